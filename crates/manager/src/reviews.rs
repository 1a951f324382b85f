//! Who may read a page, or write to it: asks the API server, as kube-rbac-proxy and controller-runtime's metrics server do.
//!
//! The account of the operator needs `create` on `tokenreviews` (authentication.k8s.io) and `subjectaccessreviews`
//! (authorization.k8s.io).
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until, timeout},
};

/// How long an answer is believed: a token that is revoked works for this long.
const BELIEVED: Duration = Duration::from_secs(60);
/// How long a refusal is believed: a grant that was forgotten should work soon after it is made.
const REFUSED: Duration = Duration::from_secs(10);
/// Time for the two questions to the API server.
const LIMIT: Duration = Duration::from_secs(10);
/// Questions at the same time: a flood of wrong tokens must not become one for the API server.
const QUESTIONS: usize = 4;
/// Between two questions about tokens that are not known: eight in a second.
const PACE: Duration = Duration::from_millis(125);
/// Between two questions about tokens that were right before: two in a second, which a flood of wrong ones does not take.
const PACE_KNOWN: Duration = Duration::from_millis(500);
/// A question that would wait longer for its turn is not asked.
const TURN: Duration = Duration::from_secs(2);
/// How long a token that was right is known as one.
const KNOWN: Duration = Duration::from_secs(3600);
/// Answers that are kept.
const KEPT: usize = 256;
/// Longer tokens are not looked at.
const TOKEN_LIMIT: usize = 16 << 10;

/// The result of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user may read the page.
    Allowed,
    /// The request has neither token nor certificate of a user: 401.
    Unauthenticated,
    /// The user may not read the page: 403.
    Forbidden,
    /// The API server did not answer: 500.
    Unknown,
}

/// Where the answers come from.
pub trait Authority: Send + Sync + 'static {
    /// The user that a token belongs to, if any.
    fn user(&self, token: &str) -> impl Future<Output = Result<Option<UserInfo>, String>> + Send;
    /// Returns true if a user has the right to `verb` (`get`, `put`) a path.
    fn may(&self, user: UserInfo, verb: &str, path: &str) -> impl Future<Output = Result<bool, String>> + Send;
}

/// The proof of a client's identity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    Token(String),
    /// The name and the groups of a verified certificate.
    Certificate(String, Vec<String>),
}

/// Proof, verb and path.
type Key = (Proof, String, String);

/// Reviews requests.
pub struct Reviews<A = ApiServer> {
    authority: A,
    known: Mutex<BTreeMap<Key, (Instant, Verdict)>>,
    questions: Semaphore,
    pace: Pace,
    pace_known: Pace,
}

/// Spreads questions over time.
struct Pace {
    gap: Duration,
    /// Those that wait for their turn.
    waiting: Semaphore,
    /// Earliest time of the next question.
    next: tokio::sync::Mutex<Instant>,
}

impl Pace {
    fn new(gap: Duration) -> Self {
        Self {
            gap,
            waiting: Semaphore::new(usize::try_from(TURN.as_millis() / gap.as_millis()).unwrap_or(1)),
            next: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    /// Waits for a turn, and for one of `questions` before that: if the API server answers slowly and then at once, those
    /// that have waited must not ask together. `None` if too many wait.
    async fn turn<'q>(&self, questions: &'q Semaphore) -> Option<SemaphorePermit<'q>> {
        let _waits = self.waiting.try_acquire().ok()?;
        let mut next = self.next.lock().await;
        let question = questions.acquire().await.ok()?;
        sleep_until(*next).await;
        *next = Instant::now() + self.gap;
        Some(question)
    }
}

impl<A: Authority> Reviews<A> {
    /// Reviews that ask `authority`.
    pub fn new(authority: A) -> Self {
        Self {
            authority,
            known: Mutex::default(),
            questions: Semaphore::new(QUESTIONS),
            pace: Pace::new(PACE),
            pace_known: Pace::new(PACE_KNOWN),
        }
    }

    /// Returns true if a request to `verb` (`get`, `put`) `path` with this `Authorization` header is allowed.
    pub async fn verdict(&self, authorization: Option<&str>, verb: &str, path: &str) -> Verdict {
        self.verdict_of(authorization, None, verb, path).await
    }

    /// As [`verdict`](Self::verdict). A request without a token may come from a user, with groups, whose certificate the server has
    /// verified.
    pub(crate) async fn verdict_of(
        &self,
        authorization: Option<&str>,
        client: Option<(String, Vec<String>)>,
        verb: &str,
        path: &str,
    ) -> Verdict {
        let proof = match (authorization.and_then(bearer), client) {
            (Some(token), _) => Proof::Token(token.to_owned()),
            (None, Some((name, groups))) => Proof::Certificate(name, groups),
            (None, None) => return Verdict::Unauthenticated,
        };
        let key = (proof, verb.to_owned(), path.to_owned());
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let answer = timeout(LIMIT, async {
            let pace = if self.was_allowed(&key) {
                &self.pace_known
            } else {
                &self.pace
            };
            let Some(_question) = pace.turn(&self.questions).await else {
                return Err("too many requests with unknown tokens".to_owned());
            };
            // Another request may have asked in between.
            match self.remembered(&key) {
                Some(verdict) => Ok(verdict),
                None => self.ask(&key.0, verb, path).await,
            }
        });
        match answer.await {
            Ok(Ok(verdict)) => {
                self.remember(key, verdict);
                verdict
            }
            Ok(Err(error)) => {
                tracing::warn!(error, "cannot review a request");
                Verdict::Unknown
            }
            Err(_) => {
                tracing::warn!("the API server did not review a request in time");
                Verdict::Unknown
            }
        }
    }

    async fn ask(&self, proof: &Proof, verb: &str, path: &str) -> Result<Verdict, String> {
        let user = match proof {
            Proof::Token(token) => self.authority.user(token).await?,
            Proof::Certificate(name, groups) => {
                // The API server adds this one itself.
                let groups = groups.iter().cloned().chain(["system:authenticated".to_owned()]);
                Some(UserInfo {
                    username: Some(name.clone()),
                    groups: Some(groups.collect()),
                    ..UserInfo::default()
                })
            }
        };
        let Some(user) = user else {
            return Ok(Verdict::Unauthenticated);
        };
        let allowed = self.authority.may(user, verb, path).await?;
        Ok(if allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }

    fn remembered(&self, key: &Key) -> Option<Verdict> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, verdict) = known.get(key)?;
        (asked.elapsed() < believed(*verdict)).then_some(*verdict)
    }

    /// Returns true if the token was right lately.
    fn was_allowed(&self, key: &Key) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(key)
            .is_some_and(|(asked, verdict)| *verdict == Verdict::Allowed && asked.elapsed() < KNOWN)
    }

    fn remember(&self, key: Key, verdict: Verdict) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.retain(|_, (asked, verdict)| asked.elapsed() < kept(*verdict));
        }
        if known.len() >= KEPT {
            // Rejections are dropped first: any client can cause them.
            known.retain(|_, (_, verdict)| *verdict == Verdict::Allowed);
        }
        if known.len() < KEPT {
            known.insert(key, (Instant::now(), verdict));
        }
    }
}

fn believed(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Allowed => BELIEVED,
        _ => REFUSED,
    }
}

fn kept(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Allowed => KNOWN,
        _ => REFUSED,
    }
}

/// The token of an `Authorization` header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_LIMIT).then_some(token)
}

/// Asks with TokenReview and SubjectAccessReview.
pub struct ApiServer {
    client: Client,
}

impl ApiServer {
    /// Asks through `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl Authority for ApiServer {
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, String> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                // Optional in the types of some versions of Kubernetes only.
                token: token.to_owned().into(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| error.to_string())?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, String> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        Ok(answer
            .map_err(|error| error.to_string())?
            .status
            .is_some_and(|status| status.allowed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Accepts `prometheus` as a reader of /metrics, and rejects `somebody`.
    #[derive(Default)]
    struct Known {
        asked: AtomicUsize,
    }

    impl Authority for &'static Known {
        async fn user(&self, token: &str) -> Result<Option<UserInfo>, String> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match token {
                "prometheus" | "somebody" => Ok(Some(UserInfo {
                    username: Some(token.to_owned()),
                    ..UserInfo::default()
                })),
                "broken" => Err("no answer".to_owned()),
                _ => Ok(None),
            }
        }

        async fn may(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, String> {
            Ok(user.username.as_deref() == Some("prometheus") && (verb, path) == ("get", "/metrics"))
        }
    }

    fn reviews() -> (&'static Known, Reviews<&'static Known>) {
        let known: &'static Known = Box::leak(Box::default());
        (known, Reviews::new(known))
    }

    #[tokio::test]
    async fn a_user_with_the_right_is_allowed_and_remembered() {
        let (known, reviews) = reviews();
        for _ in 0..3 {
            assert_eq!(
                reviews.verdict(Some("Bearer prometheus"), "get", "/metrics").await,
                Verdict::Allowed
            );
        }
        assert_eq!(known.asked.load(Ordering::Relaxed), 1);
        assert_eq!(
            reviews.verdict(Some("bearer prometheus"), "get", "/other").await,
            Verdict::Forbidden
        );
        assert_eq!(
            reviews.verdict(Some("Bearer somebody"), "get", "/metrics").await,
            Verdict::Forbidden
        );
        assert_eq!(
            reviews.verdict(Some("Bearer prometheus"), "put", "/metrics").await,
            Verdict::Forbidden
        );
        assert_eq!(
            reviews.verdict(Some("Bearer stranger"), "get", "/metrics").await,
            Verdict::Unauthenticated
        );
    }

    #[tokio::test]
    async fn a_malformed_token_causes_no_request() {
        let (known, reviews) = reviews();
        let long = format!("Bearer {}", "x".repeat(TOKEN_LIMIT + 1));
        for header in [
            None,
            Some("Basic cHJvbWV0aGV1cw=="),
            Some("Bearer "),
            Some(long.as_str()),
        ] {
            assert_eq!(
                reviews.verdict(header, "get", "/metrics").await,
                Verdict::Unauthenticated
            );
        }
        assert_eq!(known.asked.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn an_unanswered_question_is_asked_again() {
        let (known, reviews) = reviews();
        for _ in 0..2 {
            assert_eq!(
                reviews.verdict(Some("Bearer broken"), "get", "/metrics").await,
                Verdict::Unknown
            );
        }
        assert_eq!(known.asked.load(Ordering::Relaxed), 2);
    }

    /// 1,280 wrong tokens in a second, each another one.
    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_cause_few_questions_and_do_not_keep_right_ones_out() {
        let (known, reviews) = reviews();
        let allowed = async || reviews.verdict(Some("Bearer prometheus"), "get", "/metrics").await;
        assert_eq!(allowed().await, Verdict::Allowed);
        // Its answer is no longer believed.
        tokio::time::sleep(BELIEVED).await;
        let begin = Instant::now();
        let before = known.asked.load(Ordering::Relaxed);
        let wrong = (0..1280).map(|wrong| {
            let token = format!("Bearer {wrong}");
            let reviews = &reviews;
            async move { reviews.verdict(Some(&token), "get", "/metrics").await }
        });
        let (verdicts, right) = tokio::join!(futures::future::join_all(wrong), async { allowed().await });
        assert_eq!(right, Verdict::Allowed);
        assert!(!verdicts.contains(&Verdict::Allowed));
        let asked = known.asked.load(Ordering::Relaxed) - before;
        let most = 10 * usize::try_from(begin.elapsed().as_secs() + 1).unwrap();
        assert!(asked <= most, "{asked} questions in {:?}", begin.elapsed());
        // The same wrong token causes no further review.
        reviews.verdict(Some("Bearer again"), "get", "/metrics").await;
        let before = known.asked.load(Ordering::Relaxed);
        for _ in 0..100 {
            let verdict = reviews.verdict(Some("Bearer again"), "get", "/metrics").await;
            assert_eq!(verdict, Verdict::Unauthenticated);
        }
        assert_eq!(known.asked.load(Ordering::Relaxed), before);
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_do_not_push_out_right_ones() {
        let (known, reviews) = reviews();
        reviews.verdict(Some("Bearer prometheus"), "get", "/metrics").await;
        for wrong in 0..KEPT + 20 {
            reviews
                .verdict(Some(&format!("Bearer {wrong}")), "get", "/metrics")
                .await;
        }
        assert!(reviews.known.lock().unwrap().len() <= KEPT);
        let before = known.asked.load(Ordering::Relaxed);
        assert_eq!(
            reviews.verdict(Some("Bearer prometheus"), "get", "/metrics").await,
            Verdict::Allowed
        );
        assert_eq!(known.asked.load(Ordering::Relaxed), before);
    }

    /// An authority with a fixed answer. It records the time of each question.
    struct Told {
        user: Mutex<Option<UserInfo>>,
        takes: Mutex<Duration>,
        asked: Mutex<Vec<Instant>>,
    }

    impl Authority for &'static Told {
        async fn user(&self, _token: &str) -> Result<Option<UserInfo>, String> {
            self.asked.lock().unwrap().push(Instant::now());
            let takes = *self.takes.lock().unwrap();
            tokio::time::sleep(takes).await;
            Ok(self.user.lock().unwrap().clone())
        }

        async fn may(&self, _user: UserInfo, _verb: &str, _path: &str) -> Result<bool, String> {
            Ok(true)
        }
    }

    impl Told {
        fn new() -> (&'static Told, Reviews<&'static Told>) {
            let told: &'static Told = Box::leak(Box::new(Told {
                user: Mutex::new(None),
                takes: Mutex::new(Duration::ZERO),
                asked: Mutex::default(),
            }));
            (told, Reviews::new(told))
        }

        fn count(&self) -> usize {
            self.asked.lock().unwrap().len()
        }
    }

    async fn read_with<A: Authority>(reviews: &Reviews<A>, token: &str) -> Verdict {
        reviews
            .verdict(Some(&format!("Bearer {token}")), "get", "/metrics")
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_token_works_for_60_seconds_and_no_longer() {
        let (told, reviews) = Told::new();
        *told.user.lock().unwrap() = Some(UserInfo::default());
        assert_eq!(read_with(&reviews, "a").await, Verdict::Allowed);
        *told.user.lock().unwrap() = None;
        // Requests in between do not prolong it.
        for _ in 0..59 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(read_with(&reviews, "a").await, Verdict::Allowed);
        }
        assert_eq!(told.count(), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(read_with(&reviews, "a").await, Verdict::Unauthenticated);
        assert_eq!(told.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_is_believed_for_10_seconds() {
        let (told, reviews) = Told::new();
        assert_eq!(read_with(&reviews, "a").await, Verdict::Unauthenticated);
        *told.user.lock().unwrap() = Some(UserInfo::default());
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(read_with(&reviews, "a").await, Verdict::Unauthenticated);
        }
        assert_eq!(told.count(), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(read_with(&reviews, "a").await, Verdict::Allowed);
        assert_eq!(told.count(), 2);
    }

    /// The API server does not answer for some seconds, and then at once.
    #[tokio::test(start_paused = true)]
    async fn questions_that_have_waited_are_not_asked_all_at_once() {
        let (told, reviews) = Told::new();
        *told.user.lock().unwrap() = Some(UserInfo::default());
        let accepted: Vec<String> = (0..8).map(|number| format!("accepted{number}")).collect();
        for token in &accepted {
            assert_eq!(read_with(&reviews, token).await, Verdict::Allowed);
        }
        tokio::time::sleep(BELIEVED).await;
        told.asked.lock().unwrap().clear();
        *told.takes.lock().unwrap() = Duration::from_secs(8);
        let requests = (0..1_200_u32).map(|number| {
            let token = match number % 40 {
                0 => accepted[number as usize / 40 % 8].clone(),
                _ => number.to_string(),
            };
            let reviews = &reviews;
            async move {
                tokio::time::sleep(Duration::from_millis(20) * number).await;
                read_with(reviews, &token).await
            }
        });
        let (verdicts, ()) = tokio::join!(futures::future::join_all(requests), async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            *told.takes.lock().unwrap() = Duration::ZERO;
        });
        let asked = told.asked.lock().unwrap().clone();
        for (at, first) in asked.iter().enumerate() {
            let within = asked[at..]
                .iter()
                .filter(|other| **other - *first < Duration::from_secs(1));
            let within = within.count();
            assert!(within <= 10, "{within} questions in a second");
        }
        assert!(asked.len() > 50, "{}", asked.len());
        assert!(verdicts.contains(&Verdict::Allowed));
    }
}
