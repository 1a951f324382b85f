//! The two text forms of metrics. Prometheus asks for one of them in the header `Accept`.

/// The media type of OpenMetrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type of Prometheus' older text form.
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns true if a client with this `Accept` header prefers OpenMetrics. A client that names no form gets the older one, as
/// from Go programs.
pub(crate) fn prefers_open_metrics(accept: &str) -> bool {
    let weight = |name: &str| {
        let ranges = accept.split(',').map(|range| range.split(';').map(str::trim));
        let weights = ranges.filter_map(|mut range| {
            let is_asked = range.next()?.eq_ignore_ascii_case(name);
            let weight = range.find_map(|parameter| parameter.strip_prefix("q=")?.parse().ok());
            is_asked.then_some(weight.unwrap_or(1.0))
        });
        weights.fold(0.0, f64::max)
    };
    let open = weight("application/openmetrics-text");
    open > 0.0 && open >= weight("text/plain")
}

/// The older text form of metrics in OpenMetrics form: counters are described under the name of their sample, and there are no
/// units, no references to traces and no end mark.
pub(crate) fn plain(open: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // The description of a metric comes before its type.
    let mut help = None;
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "stateset" => ("", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((name, text)) = help.take() {
                lines.push(format!("# HELP {name}{suffix} {text}"));
            }
            lines.push(format!("# TYPE {name}{suffix} {kind}"));
        } else if !line.starts_with('#') {
            let sample = line.split_once(" # {").map_or(line, |(sample, _)| sample);
            lines.push(sample.to_owned());
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_form_describes_counters_by_their_samples() {
        let open = "# HELP requests Requests.\n# TYPE requests counter\n# UNIT requests seconds\n\
                    requests_total{code=\"200\"} 3 # {trace=\"a\"} 1.0\n# HELP depth Keys.\n# TYPE depth gauge\ndepth 1\n# EOF\n";
        let expected = "# HELP requests_total Requests.\n# TYPE requests_total counter\n\
                        requests_total{code=\"200\"} 3\n# HELP depth Keys.\n# TYPE depth gauge\ndepth 1\n";
        assert_eq!(plain(open), expected);
        assert_eq!(plain("# EOF\n"), "");
    }

    #[test]
    fn a_client_gets_the_form_that_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [
            prometheus,
            "application/openmetrics-text",
            "text/html, Application/OpenMetrics-Text; q=0.1",
        ] {
            assert!(prefers_open_metrics(accept), "{accept}");
        }
        let plain = "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;q=0.4";
        for accept in ["", "*/*", "text/plain", plain, "application/openmetrics-text;q=0"] {
            assert!(!prefers_open_metrics(accept), "{accept}");
        }
    }
}
