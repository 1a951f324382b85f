//! The table of functions: `receiver name(parameters) result`, or `name(parameters) result` for those without receiver.
//! A capital letter means any type, `{a|b}` for one line with each of them.

use super::Library;

/// Types of libraries: how the table calls them, and how CEL does.
pub(crate) const TYPES: [(&str, &str); 6] = [
    ("url", "kubernetes.URL"),
    ("ip", "net.IP"),
    ("cidr", "net.CIDR"),
    ("quantity", "kubernetes.Quantity"),
    ("semver", "kubernetes.Semver"),
    ("format", "kubernetes.NamedFormat"),
];

/// All functions.
pub(crate) const TABLE: [(Library, &str); 16] = [
    (Library::Standard, OPERATORS),
    (Library::Standard, CONVERSIONS),
    (Library::Standard, TIMES),
    (Library::Standard, STANDARD_STRINGS),
    (Library::Core, STRINGS),
    (Library::Core, KUBERNETES_LISTS),
    (Library::Core, URLS),
    (Library::Optional, OPTIONALS),
    (Library::Quantity, QUANTITIES),
    (Library::StringFormat, STRING_FORMAT),
    (Library::Sets, SETS),
    (Library::Ip, NETWORK),
    (Library::Format, FORMATS),
    (Library::Semver, SEMVER),
    (Library::Lists, LISTS),
    (Library::Lists, SORT_BY),
];

const OPERATORS: &str = "
    !_(bool) bool
    -_(int) int
    -_(double) double
    _==_(A,A) bool
    _!=_(A,A) bool
    _+_(bytes,bytes) bytes
    _+_(double,double) double
    _+_(duration,duration) duration
    _+_(duration,timestamp) timestamp
    _+_(timestamp,duration) timestamp
    _+_(int,int) int
    _+_(list(A),list(A)) list(A)
    _+_(string,string) string
    _+_(uint,uint) uint
    _-_(double,double) double
    _-_(duration,duration) duration
    _-_(int,int) int
    _-_(timestamp,duration) timestamp
    _-_(timestamp,timestamp) duration
    _-_(uint,uint) uint
    _*_({int|uint|double},{int|uint|double}) {int|uint|double}
    _/_({int|uint|double},{int|uint|double}) {int|uint|double}
    _%_({int|uint},{int|uint}) {int|uint}
    _<_({bool|string|bytes|timestamp|duration},{bool|string|bytes|timestamp|duration}) bool
    _<_(int,int) bool
    _<_(int,uint) bool
    _<_(int,double) bool
    _<_(uint,int) bool
    _<_(uint,uint) bool
    _<_(uint,double) bool
    _<_(double,int) bool
    _<_(double,uint) bool
    _<_(double,double) bool
    _[_](list(A),int) A
    _[_](map(A,B),A) B
    @in(A,list(A)) bool
    @in(A,map(A,B)) bool
    size({string|bytes|list(A)|map(A,B)}) int
    {string|bytes|list(A)|map(A,B)} size() int
";

const CONVERSIONS: &str = "
    type(A) type(A)
    dyn(A) dyn
    bool({bool|string}) bool
    bytes({bytes|string}) bytes
    double({double|int|string|uint}) double
    duration({duration|string}) duration
    int({int|double|duration|string|timestamp|uint}) int
    string({string|bool|bytes|double|duration|int|timestamp|uint}) string
    timestamp({timestamp|int|string}) timestamp
    uint({uint|double|int|string}) uint
";

const STANDARD_STRINGS: &str = "
    string contains(string) bool
    string endsWith(string) bool
    string startsWith(string) bool
    string matches(string) bool
    matches(string,string) bool
";

const TIMES: &str = "
    timestamp getFullYear() int
    timestamp getFullYear(string) int
    timestamp getMonth() int
    timestamp getMonth(string) int
    timestamp getDayOfYear() int
    timestamp getDayOfYear(string) int
    timestamp getDayOfMonth() int
    timestamp getDayOfMonth(string) int
    timestamp getDate() int
    timestamp getDate(string) int
    timestamp getDayOfWeek() int
    timestamp getDayOfWeek(string) int
    {timestamp|duration} getHours() int
    timestamp getHours(string) int
    {timestamp|duration} getMinutes() int
    timestamp getMinutes(string) int
    {timestamp|duration} getSeconds() int
    timestamp getSeconds(string) int
    {timestamp|duration} getMilliseconds() int
    timestamp getMilliseconds(string) int
";

const STRINGS: &str = "
    string charAt(int) string
    string indexOf(string) int
    string indexOf(string,int) int
    string lastIndexOf(string) int
    string lastIndexOf(string,int) int
    string lowerAscii() string
    string replace(string,string) string
    string replace(string,string,int) string
    string split(string) list(string)
    string split(string,int) list(string)
    string substring(int) string
    string substring(int,int) string
    string trim() string
    string upperAscii() string
    list(string) join() string
    list(string) join(string) string
    string find(string) string
    string findAll(string) list(string)
    string findAll(string,int) list(string)
";

const KUBERNETES_LISTS: &str = "
    list({int|uint|double|bool|duration|timestamp|string|bytes}) isSorted() bool
    list({int|uint|double|duration}) sum() {int|uint|double|duration}
    list({int|uint|double|bool|duration|timestamp|string|bytes}) max() {int|uint|double|bool|duration|timestamp|string|bytes}
    list({int|uint|double|bool|duration|timestamp|string|bytes}) min() {int|uint|double|bool|duration|timestamp|string|bytes}
    list(A) indexOf(A) int
    list(A) lastIndexOf(A) int
";

const URLS: &str = "
    url(string) url
    url getScheme() string
    url getHost() string
    url getHostname() string
    url getPort() string
    url getEscapedPath() string
    url getQuery() map(string,list(string))
    isURL(string) bool
";

const OPTIONALS: &str = "
    optional.of(V) optional(V)
    optional.ofNonZeroValue(V) optional(V)
    optional.none() optional(V)
    optional(V) value() V
    optional(V) hasValue() bool
    optional(V) or(optional(V)) optional(V)
    optional(V) orValue(V) V
    _[?_](list(V),int) optional(V)
    _[?_](optional(list(V)),int) optional(V)
    _[?_](map(K,V),K) optional(V)
    _[?_](optional(map(K,V)),K) optional(V)
    _[_](optional(list(V)),int) optional(V)
    _[_](optional(map(K,V)),K) optional(V)
    list(V) last() optional(V)
    list(V) first() optional(V)
    optional.unwrap(list(optional(V))) list(V)
    list(optional(V)) unwrapOpt() list(V)
";

const QUANTITIES: &str = "
    quantity(string) quantity
    isQuantity(string) bool
    sign(quantity) int
    quantity isGreaterThan(quantity) bool
    quantity isLessThan(quantity) bool
    quantity compareTo(quantity) int
    quantity asApproximateFloat() double
    quantity asInteger() int
    quantity isInteger() bool
    quantity add(quantity) quantity
    quantity add(int) quantity
    quantity sub(quantity) quantity
    quantity sub(int) quantity
";

const STRING_FORMAT: &str = "
    string format(list(dyn)) string
    strings.quote(string) string
";

const SETS: &str = "
    sets.contains(list(T),list(T)) bool
    sets.equivalent(list(T),list(T)) bool
    sets.intersects(list(T),list(T)) bool
";

const NETWORK: &str = "
    ip(string) ip
    ip family() int
    ip.isCanonical(string) bool
    ip isUnspecified() bool
    ip isLoopback() bool
    ip isLinkLocalMulticast() bool
    ip isLinkLocalUnicast() bool
    ip isGlobalUnicast() bool
    isIP(string) bool
    string({ip|cidr}) string
    cidr(string) cidr
    cidr containsIP({string|ip}) bool
    cidr containsCIDR({string|cidr}) bool
    cidr ip() ip
    cidr prefixLength() int
    cidr masked() cidr
    isCIDR(string) bool
";

const FORMATS: &str = "
    format validate(string) optional(list(string))
    format.named(string) optional(format)
    format.dns1123Label() format
    format.dns1123Subdomain() format
    format.dns1035Label() format
    format.qualifiedName() format
    format.dns1123LabelPrefix() format
    format.dns1123SubdomainPrefix() format
    format.dns1035LabelPrefix() format
    format.labelValue() format
    format.uri() format
    format.uuid() format
    format.byte() format
    format.date() format
    format.datetime() format
";

const SEMVER: &str = "
    semver(string) semver
    semver(string,bool) semver
    isSemver(string) bool
    isSemver(string,bool) bool
    semver isGreaterThan(semver) bool
    semver isLessThan(semver) bool
    semver compareTo(semver) int
    semver major() int
    semver minor() int
    semver patch() int
";

const LISTS: &str = "
    list(T) slice(int,int) list(T)
    list(list(T)) flatten() list(T)
    list(dyn) flatten(int) list(dyn)
    list({int|uint|double|bool|duration|timestamp|string|bytes}) sort() list({int|uint|double|bool|duration|timestamp|string|bytes})
    lists.range(int) list(int)
    list(T) reverse() list(T)
    list(T) distinct() list(T)
";

const SORT_BY: &str = "
    list(T) @sortByAssociatedKeys(list({int|uint|double|bool|duration|timestamp|string|bytes})) list(T)
";
