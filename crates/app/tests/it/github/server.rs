//! A small GitHub, written from its REST documentation: strict about parameters, and with limits that
//! it counts.

use crate::counterpart::{Call, reply};
use crate::github::show::{card, comment, issue, merge, minimal};
use crate::github::world::{Account, Issue, Repo, World};
use crate::strict::Asked;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

/// Items on the pages of a list, whatever is asked for: short and empty ones lie on the way.
const PAGES: [usize; 6] = [3, 1, 0, 2, 3, 100];

pub(crate) struct Server {
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) world: World,
    /// Calls that no documentation allows.
    pub(crate) faults: Vec<String>,
    /// Calls beyond a limit, or made while it was said to wait.
    pub(crate) violations: Vec<String>,
    core: Window,
    search: Window,
    points: Vec<Instant>,
    /// A refusal that is still to come: after so many calls, and how it is said.
    refuse: Option<(usize, Refusal)>,
    shut_until: Option<SystemTime>,
    calls: usize,
}

/// How a server says that a limit is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 403 with nothing left, and when there is more.
    Primary,
    /// 403 with `retry-after`.
    Secondary,
}

/// A limit whose window begins with the first call.
struct Window {
    resource: &'static str,
    limit: usize,
    length: Duration,
    begun: Option<SystemTime>,
    used: usize,
}

impl Window {
    fn new(resource: &'static str, limit: usize, length: Duration) -> Self {
        Self {
            resource,
            limit,
            length,
            begun: None,
            used: 0,
        }
    }

    /// Counts a call; whether it is within the limit.
    fn count(&mut self, now: SystemTime) -> bool {
        let is_over = self.begun.is_none() || now >= self.end();
        if is_over {
            (self.begun, self.used) = (Some(now), 0);
        }
        self.used += 1;
        self.used <= self.limit
    }

    /// Windows end with a second, so that what headers say of it is exact.
    fn end(&self) -> SystemTime {
        let end = self.begun.unwrap_or_else(SystemTime::now) + self.length;
        UNIX_EPOCH + Duration::from_secs(seconds(end))
    }

    fn headers(&self) -> String {
        format!(
            "x-ratelimit-limit: {}\r\nx-ratelimit-remaining: {}\r\nx-ratelimit-used: {}\r\n\
             x-ratelimit-reset: {}\r\nx-ratelimit-resource: {}\r\n",
            self.limit,
            self.limit.saturating_sub(self.used),
            self.used,
            seconds(self.end()),
            self.resource
        )
    }
}

fn seconds(time: SystemTime) -> u64 {
    // Rounded up: a window is not over before its last second is.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() + u64::from(since.subsec_nanos() > 0)
}

/// An answer: status, further headers, body.
struct Answer {
    status: &'static str,
    headers: String,
    body: Value,
}

impl Answer {
    fn ok(body: Value) -> Self {
        Self {
            status: "200 OK",
            headers: String::new(),
            body,
        }
    }

    fn error(status: &'static str, message: &str) -> Self {
        Self {
            status,
            headers: String::new(),
            body: json!({ "message": message, "documentation_url": "https://docs.github.com/rest" }),
        }
    }

    fn not_found() -> Self {
        Self::error("404 Not Found", "Not Found")
    }
}

impl Server {
    pub(crate) fn new(world: World) -> Self {
        let state = State {
            world,
            faults: Vec::new(),
            violations: Vec::new(),
            core: Window::new("core", 5000, Duration::from_hours(1)),
            search: Window::new("search", 30, Duration::from_mins(1)),
            points: Vec::new(),
            refuse: None,
            shut_until: None,
            calls: 0,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(&self, call: &Call, stream: &mut TcpStream) -> std::io::Result<()> {
        // Somebody who was killed before saying anything.
        if call.method.is_empty() {
            return Ok(());
        }
        let answer = self.state().answer(call);
        let body = answer.body.to_string();
        reply(stream, answer.status, &answer.headers, body.as_bytes())
    }
}

impl State {
    /// Refuses a call, after so many others. The hour is nearly over, so that nobody waits for long.
    pub(crate) fn refuse_after(&mut self, calls: usize, refusal: Refusal) {
        self.refuse = Some((calls, refusal));
        self.core.begun = Some(SystemTime::now() + Duration::from_secs(2) - self.core.length);
        self.core.used = 100;
    }

    fn answer(&mut self, call: &Call) -> Answer {
        let header = |name: &str| {
            let mut pairs = call.headers.iter().filter_map(|line| line.split_once(':'));
            let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        if header("user-agent").is_none_or(|agent| agent.is_empty()) || call.method != "GET" {
            self.faults.push(format!("{} without a name", call.target));
            return Answer::error(
                "403 Forbidden",
                "Request forbidden by administrative rules.",
            );
        }
        if header("authorization").as_deref() != Some(&format!("Bearer {TOKEN}")) {
            return Answer::error("401 Unauthorized", "Bad credentials");
        }
        if call.target == "/rate_limit" {
            return self.limits();
        }
        if let Some(refusal) = self.limit(call) {
            return refusal;
        }
        let asked = Asked::of(call).and_then(|asked| self.respond(call, &asked));
        let mut answer = asked.unwrap_or_else(|fault| {
            self.faults.push(format!("{}: {fault}", call.target));
            Answer::error("422 Unprocessable Entity", &fault)
        });
        let is_search = call.target.starts_with("/search/");
        let window = if is_search { &self.search } else { &self.core };
        answer.headers.push_str(&window.headers());
        answer
    }

    /// What is left, for the asking.
    fn limits(&self) -> Answer {
        let told = |window: &Window| {
            json!({
                "limit": window.limit, "used": window.used, "reset": seconds(window.end()),
                "remaining": window.limit.saturating_sub(window.used),
            })
        };
        let resources = json!({ "core": told(&self.core), "search": told(&self.search) });
        Answer::ok(json!({ "resources": resources, "rate": told(&self.core) }))
    }

    /// Counts the call, and refuses it if it is one too many.
    fn limit(&mut self, call: &Call) -> Option<Answer> {
        let (now, instant) = (SystemTime::now(), Instant::now());
        self.calls += 1;
        if self.shut_until.is_some_and(|until| now < until) {
            self.violations
                .push(format!("{} while it was shut", call.target));
        }
        if let Some((_, refusal)) = self.refuse.take_if(|(after, _)| *after < self.calls) {
            return Some(self.shut(refusal, now));
        }
        self.points
            .retain(|at| instant.duration_since(*at) < Duration::from_mins(1));
        self.points.push(instant);
        let is_search = call.target.starts_with("/search/");
        let window = if is_search {
            &mut self.search
        } else {
            &mut self.core
        };
        let is_within = window.count(now) && self.points.len() <= 900;
        if is_within {
            return None;
        }
        self.violations
            .push(format!("{} beyond a limit", call.target));
        Some(self.shut(Refusal::Primary, now))
    }

    fn shut(&mut self, refusal: Refusal, now: SystemTime) -> Answer {
        let (message, further, until) = match refusal {
            // Another program of the same account has used up the rest of the hour.
            Refusal::Primary => {
                self.core.used = self.core.limit;
                let message = "API rate limit exceeded for user ID 1.";
                (message, "", self.core.end())
            }
            Refusal::Secondary => {
                let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
                (message, "retry-after: 2\r\n", now + Duration::from_secs(2))
            }
        };
        self.shut_until = Some(until);
        Answer {
            headers: format!("{}{further}", self.core.headers()),
            ..Answer::error("403 Forbidden", message)
        }
    }

    fn respond(&self, call: &Call, asked: &Asked) -> Result<Answer, String> {
        let base = format!("http://{}", call.host);
        let segments: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
        match segments.as_slice() {
            ["users", login] => {
                asked.expect(&[], &[])?;
                Ok(self.account(self.world.by_login(login), &base))
            }
            ["user", id] => {
                asked.expect(&[], &[])?;
                Ok(self.account(self.world.by_id(id), &base))
            }
            ["user", id, list] => self.list(id, list, asked, &base),
            ["search", "issues"] => self.search(asked, &base),
            ["repos", owner, name, rest @ ..] => {
                let full_name = format!("{owner}/{name}");
                if let Some(repo) = self.world.moved_from(&full_name) {
                    return Ok(moved(repo, rest, asked, &base, call));
                }
                self.repo(self.world.repo_by_name(&full_name), rest, asked, &base)
            }
            ["repositories", id, rest @ ..] => {
                self.repo(self.world.repo_by_id(id), rest, asked, &base)
            }
            _ => Err("there is no such address".to_owned()),
        }
    }

    fn account(&self, account: Option<&Account>, base: &str) -> Answer {
        let Some(account) = account.filter(|account| !account.is_gone) else {
            return Answer::not_found();
        };
        let mut body = card(account, base);
        let more = json!({
            "name": account.name, "company": null, "blog": "", "location": account.location, "email": null,
            "hireable": null, "bio": account.bio, "twitter_username": null, "public_repos": 0,
            "public_gists": 0, "followers": self.world.followers(account.id).len(),
            "following": self.world.following(account.id).len(),
            "created_at": "2014-03-02T10:11:12Z", "updated_at": "2026-11-01T08:00:00Z",
        });
        merge(&mut body, more);
        Answer::ok(body)
    }

    fn list(&self, id: &str, list: &str, asked: &Asked, base: &str) -> Result<Answer, String> {
        let ordered: &[(&str, &str)] = match list {
            "followers" | "following" => &[("per_page", "100")],
            "starred" => &[
                ("per_page", "100"),
                ("sort", "created"),
                ("direction", "desc"),
            ],
            _ => return Err("there is no such list".to_owned()),
        };
        asked.expect(ordered, &["page"])?;
        let world = &self.world;
        let Some(account) = world.by_id(id).filter(|account| !account.is_gone) else {
            return Ok(Answer::not_found());
        };
        let cards = |accounts: Vec<&Account>| -> Vec<Value> {
            accounts.into_iter().map(|it| card(it, base)).collect()
        };
        let items = match list {
            "followers" => cards(world.followers(account.id)),
            "following" => cards(world.following(account.id)),
            _ => {
                let repos = world.starred(account.id).into_iter();
                repos.map(|repo| minimal(world, repo, base)).collect()
            }
        };
        page_of(
            items,
            asked,
            &format!("{base}/user/{id}/{list}"),
            Value::Array,
        )
    }

    /// Issues or pull requests of an author; nobody by that login is an error.
    fn search(&self, asked: &Asked, base: &str) -> Result<Answer, String> {
        let ordered = [
            ("per_page", "100"),
            ("sort", "created"),
            ("order", "desc"),
            ("q", "*"),
        ];
        asked.expect(&ordered, &["page"])?;
        let words: Vec<&str> = asked.get("q").unwrap_or_default().split(' ').collect();
        let (login, is_pull) = match words.as_slice() {
            [author, kind @ ("is:issue" | "is:pull-request")] => {
                let login = author.strip_prefix("author:").ok_or("no author")?;
                (login, *kind == "is:pull-request")
            }
            _ => return Err("a search names an author and one kind".to_owned()),
        };
        let Some(author) = self.world.by_login(login).filter(|it| !it.is_gone) else {
            let message = "The listed users cannot be searched either because the users do not exist or you do not have permission to view the users.";
            let error = json!({ "message": message, "resource": "Search", "field": "q", "code": "invalid" });
            return Ok(Answer {
                body: json!({ "message": "Validation Failed", "errors": [error] }),
                ..Answer::error("422 Unprocessable Entity", "")
            });
        };
        let mut found: Vec<&Issue> = self.world.issues.iter().collect();
        found.retain(|issue| issue.author == Some(author.id) && issue.is_pull == is_pull);
        found.sort_by(|left, right| right.created.cmp(&left.created));
        let total = found.len();
        let items = found.into_iter().map(|it| {
            let mut item = issue(&self.world, it, base);
            merge(&mut item, json!({ "score": 1.0 }));
            item
        });
        let shape =
            |items| json!({ "total_count": total, "incomplete_results": false, "items": items });
        page_of(
            items.collect(),
            asked,
            &format!("{base}/search/issues"),
            shape,
        )
    }

    fn repo(
        &self,
        repo: Option<&Repo>,
        rest: &[&str],
        asked: &Asked,
        base: &str,
    ) -> Result<Answer, String> {
        let Some(repo) = repo else {
            return Ok(Answer::not_found());
        };
        if repo.is_taken_down {
            let status = "451 Unavailable For Legal Reasons";
            return Ok(Answer::error(status, "Repository access blocked"));
        }
        match rest {
            [] => {
                asked.expect(&[], &[])?;
                let mut body = minimal(&self.world, repo, base);
                merge(
                    &mut body,
                    json!({ "subscribers_count": 2, "network_count": 0 }),
                );
                Ok(Answer::ok(body))
            }
            ["issues"] => self.issues(repo, asked, base),
            ["issues", number] => {
                asked.expect(&[], &[])?;
                let found = self.world.issue_of(repo.id, number);
                Ok(found.map_or_else(Answer::not_found, |found| {
                    if found.is_deleted {
                        return Answer::error("410 Gone", "This issue was deleted");
                    }
                    let mut body = issue(&self.world, found, base);
                    merge(&mut body, json!({ "closed_by": null }));
                    Answer::ok(body)
                }))
            }
            ["issues", number, "comments"] => {
                asked.expect(&[("per_page", "100")], &["page", "since"])?;
                let Some(found) = self.world.issue_of(repo.id, number) else {
                    return Ok(Answer::not_found());
                };
                let comments = self.world.comments_of(found.id);
                let items = comments
                    .into_iter()
                    .map(|it| comment(&self.world, it, base));
                let address = format!("{base}/repositories/{}/issues/{number}/comments", repo.id);
                page_of(items.collect(), asked, &address, Value::Array)
            }
            _ => Err("there is no such address".to_owned()),
        }
    }

    /// The issues of a repository. Its later pages want the cursor that the one before gave.
    fn issues(&self, repo: &Repo, asked: &Asked, base: &str) -> Result<Answer, String> {
        let ordered = [
            ("per_page", "100"),
            ("state", "all"),
            ("sort", "created"),
            ("direction", "desc"),
        ];
        asked.expect(&ordered, &["page", "after", "since"])?;
        let page = asked.page()?;
        let cursor = asked.get("after").map(str::to_owned);
        if page > 1 && cursor != Some(format!("Y{page}")) {
            return Err(
                "Pagination with the page parameter is not supported for large datasets".to_owned(),
            );
        }
        if !repo.has_issues {
            return Ok(Answer::error(
                "410 Gone",
                "Issues are disabled for this repo",
            ));
        }
        let mut found: Vec<&Issue> = self.world.issues.iter().collect();
        let since = asked.get("since").unwrap_or_default();
        found.retain(|it| it.repo == repo.id && it.updated.as_str() >= since && !it.is_deleted);
        found.sort_by(|left, right| right.created.cmp(&left.created));
        let items = found.into_iter().map(|it| issue(&self.world, it, base));
        let after = format!("&after=Y{}", page + 1);
        let address = format!("{base}/repositories/{}/issues", repo.id);
        page_with(items.collect(), asked, &address, &after, Value::Array)
    }
}

/// Where a repository is now that was called otherwise.
fn moved(repo: &Repo, rest: &[&str], asked: &Asked, base: &str, call: &Call) -> Answer {
    let query = call
        .target
        .strip_prefix(asked.path.as_str())
        .unwrap_or_default();
    let mut place = format!("{base}/repositories/{}", repo.id);
    for part in rest {
        place = format!("{place}/{part}");
    }
    Answer {
        headers: format!("location: {place}{query}\r\n"),
        ..Answer::error("301 Moved Permanently", "Moved Permanently")
    }
}

fn page_of(
    items: Vec<Value>,
    asked: &Asked,
    address: &str,
    shape: impl Fn(Vec<Value>) -> Value,
) -> Result<Answer, String> {
    page_with(items, asked, address, "", shape)
}

/// One page, and the address of the next under the number of what was asked about.
fn page_with(
    items: Vec<Value>,
    asked: &Asked,
    address: &str,
    further: &str,
    shape: impl Fn(Vec<Value>) -> Value,
) -> Result<Answer, String> {
    let page = asked.page()?;
    let start: usize = PAGES.iter().take(page - 1).sum();
    let size = *PAGES.get(page - 1).ok_or("beyond the last page")?;
    let is_last = start + size >= items.len();
    let shown = items.into_iter().skip(start).take(size).collect();
    let mut answer = Answer::ok(shape(shown));
    if !is_last {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for name in [
            "q",
            "state",
            "sort",
            "direction",
            "order",
            "since",
            "per_page",
        ] {
            if let Some(value) = asked.get(name) {
                query.append_pair(name, value);
            }
        }
        let query = query.finish();
        let link = |page: usize| format!("<{address}?{query}&page={page}{further}>");
        answer.headers = format!(
            "link: {}; rel=\"next\", {}; rel=\"first\"\r\n",
            link(page + 1),
            link(1)
        );
    }
    Ok(answer)
}
