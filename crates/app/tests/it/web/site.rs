//! The site `roost` of docs/web-pages.md: people with profiles, posts over pages, lists of whom they
//! follow, a calendar without end, a log-in form with a hidden word, and a robots.txt.

use crate::authority::PLANTED;
use crate::counterpart::{Call, Counterpart, reply};
use crate::oracle::Rows;
use crate::strict::{Asked, rows_of};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use url::form_urlencoded;

const PEOPLE: [&str; 12] = [
    "ann", "bea", "cid", "dot", "eve", "fay", "gil", "hal", "ida", "jon", "kit", "lea",
];
/// Items on a page.
const PAGE: usize = 3;
/// Who may log in.
pub(super) const NAME: &str = "warden";
/// Not plain, as forms have to write it.
pub(super) const PASSWORD: &str = "planted/pass&word+0001";
const DAY_US: i64 = 86_400_000_000;
/// 2026-11-01T08:00:00Z.
const FIRST_US: i64 = 1_793_520_000_000_000;

/// An answer before it is sent.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) status: &'static str,
    pub(super) headers: String,
    pub(super) body: Vec<u8>,
}

impl Told {
    pub(super) fn page(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: "200 OK",
            headers: "content-type: text/html; charset=utf-8\r\n".to_owned(),
            body: body.into(),
        }
    }

    pub(super) fn with(status: &'static str, kind: &str, body: &str) -> Self {
        Self {
            status,
            headers: format!("content-type: {kind}\r\n"),
            body: body.as_bytes().to_vec(),
        }
    }

    fn refused(why: &str) -> Self {
        Self::with("400 Bad Request", "text/html", why)
    }

    pub(super) fn to(place: &str) -> Self {
        Self {
            status: "303 See Other",
            headers: format!("content-type: text/html\r\nlocation: {place}\r\n"),
            body: Vec::new(),
        }
    }
}

/// What a page that wants a log-in answers to those who are not logged in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Redirect,
    Form,
}

/// What may change while the site is asked.
pub(super) struct State {
    pub(super) door: Door,
    pub(super) password: String,
    pub(super) robots: Told,
    /// The class of the names of people: the layout.
    pub(super) name_class: &'static str,
    /// Whether people are said to be what the session is called.
    pub(super) is_indiscreet: bool,
    /// Where the calendar of a person leads, after so many pages of the site, from a page of its
    /// own: what follows `?`.
    pub(super) later: fn(&str, usize, usize) -> String,
    sessions: BTreeSet<String>,
    /// Forms that were given out and not sent back yet: the hidden word and its cookie.
    forms: BTreeSet<(String, String)>,
    issued: u32,
    /// Pages that were shown to somebody who is logged in.
    pub(super) shown: Vec<String>,
    /// Calls that no documentation allows.
    pub(super) faults: Vec<String>,
}

impl State {
    pub(super) fn end_sessions(&mut self) {
        self.sessions.clear();
    }

    fn issue(&mut self, what: &str) -> String {
        self.issued += 1;
        format!("{PLANTED}-{what}-{:06}", self.issued)
    }
}

/// What a test does to the site before a call is answered; an answer takes the place of the usual one.
type Twist = dyn Fn(&mut State, &str) -> Option<Told> + Send + Sync;

pub(super) struct Roost {
    server: Counterpart,
    state: Arc<Mutex<State>>,
}

impl Roost {
    pub(super) fn start() -> Self {
        Self::twisted(|_, _| None)
    }

    /// One that is not quite as usual; `twist` is given what is asked for.
    pub(super) fn twisted(
        twist: impl Fn(&mut State, &str) -> Option<Told> + Send + Sync + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(State {
            door: Door::Redirect,
            password: PASSWORD.to_owned(),
            robots: Told::with("404 Not Found", "text/plain", "none"),
            name_class: "name",
            is_indiscreet: false,
            later: |_, _, page| format!("page={}", page + 1),
            sessions: BTreeSet::new(),
            forms: BTreeSet::new(),
            issued: 0,
            shown: Vec::new(),
            faults: Vec::new(),
        }));
        let inner = Arc::clone(&state);
        let twist: Box<Twist> = Box::new(twist);
        let server = Counterpart::start(move |call, stream| {
            let told = answer(&mut lock(&inner), call, &*twist);
            reply(stream, told.status, &told.headers, &told.body)
        });
        Self { server, state }
    }

    pub(super) fn address(&self) -> &str {
        &self.server.address
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Everything that was asked for, in the order in which it came: `METHOD TARGET`.
    pub(super) fn log(&self) -> Vec<String> {
        let calls = self.server.calls().into_iter();
        calls
            .map(|call| format!("{} {}", call.method, call.target))
            .collect()
    }

    /// How often something was asked for.
    pub(super) fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|it| *it == line).count()
    }

    /// The pages of people that were asked for, answered or not.
    pub(super) fn targets(&self) -> Vec<String> {
        let log = self.log().into_iter();
        log.filter_map(|line| line.strip_prefix("GET ").map(str::to_owned))
            .filter(|target| target.starts_with("/@"))
            .collect()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(state: &mut State, call: &Call, twist: &Twist) -> Told {
    if call.method == "GET"
        && let Some(told) = twist(state, &call.target)
    {
        return told;
    }
    let told = match (call.method.as_str(), call.target.as_str()) {
        ("GET", "/robots.txt") if cookie(call).is_some() => Err("a cookie for robots.txt"),
        ("GET", "/robots.txt") => Ok(state.robots.clone()),
        ("GET", "/login") => Ok(login_page(state)),
        ("POST", "/session") => Ok(log_in(state, call)),
        ("GET", target) if target.starts_with("/@") => page_of_somebody(state, call),
        _ => Err("no such page"),
    };
    told.unwrap_or_else(|why| {
        let line = format!("{} {}: {why}", call.method, call.target);
        state.faults.push(line);
        Told::refused(why)
    })
}

fn cookie(call: &Call) -> Option<&str> {
    let mut headers = call.headers.iter().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    found.map(|(_, value)| value.trim())
}

fn login_page(state: &mut State) -> Told {
    let (word, visit) = (state.issue("word"), state.issue("visit"));
    let mut told = Told::page(format!(
        "<!doctype html><title>Log in</title><form action=/search><input name=q></form>\
         <form method=post action=/session><input type=hidden name=word value={word}>\
         <label>Name <input name=name></label>\
         <label>Password <input type=password name=password></label><button>In</button></form>"
    ));
    let _ = write!(told.headers, "set-cookie: visit={visit}; Path=/\r\n");
    state.forms.insert((word, visit));
    told
}

fn log_in(state: &mut State, call: &Call) -> Told {
    let value = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(call.body.as_bytes());
        let found = pairs.find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    let visit = cookie(call).and_then(|it| it.strip_prefix("visit="));
    let form = (value("word"), visit.unwrap_or_default().to_owned());
    if !state.forms.remove(&form) {
        state
            .faults
            .push("a form that was never given out".to_owned());
        return Told::refused("no such form");
    }
    if value("name") != NAME || value("password") != state.password {
        return Told::to("/login?failed=1");
    }
    let session = state.issue("session");
    let mut told = Told::to("/");
    let _ = write!(
        told.headers,
        "set-cookie: roost_session={session}; Path=/; HttpOnly; Secure\r\nset-cookie: visit=; Max-Age=0\r\n"
    );
    state.sessions.insert(session);
    told
}

fn page_of_somebody(state: &mut State, call: &Call) -> Result<Told, &'static str> {
    let session = cookie(call).and_then(|it| it.strip_prefix("roost_session="));
    let session = session.ok_or("no session")?.to_owned();
    if !state.sessions.contains(&session) {
        return Ok(match state.door {
            Door::Redirect => Told::to("/login?next=%2F"),
            Door::Form => login_page(state),
        });
    }
    let asked = Asked::of(call).map_err(|_| "a parameter twice")?;
    let words: Vec<&str> = asked.path.trim_start_matches("/@").split('/').collect();
    let place = |handle: &str| PEOPLE.iter().position(|it| *it == handle);
    let person = place(words[0]).ok_or("nobody")?;
    let page = asked.page().map_err(|_| "no page")?;
    let base = format!("http://{}", call.host);
    let inner = match &words[1..] {
        [] if state.is_indiscreet => {
            profile(person, &base, state.name_class) + &format!("<p class=about>{session}")
        }
        [] => profile(person, &base, state.name_class),
        ["follows"] => follows_page(person, &base, page),
        ["posts"] => posts_page(person, page),
        ["calendar"] => calendar_page(
            person,
            page,
            &(state.later)(PEOPLE[person], state.shown.len(), page),
        ),
        _ => return Err("no such page"),
    };
    state.shown.push(call.target.clone());
    // Servers write the session on their pages, for the forms on them.
    Ok(Told::page(format!(
        "<!doctype html><meta name=csrf content={session}><title>Roost</title>{inner}"
    )))
}

fn name_of(person: usize) -> String {
    let mut name = PEOPLE[person].to_owned();
    name[..1].make_ascii_uppercase();
    // As names are: marks that have to be written in another way.
    format!("{name} <& Cörmorant>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What somebody says of themselves, if anything.
fn about_of(person: usize) -> Option<String> {
    (!person.is_multiple_of(3)).then(|| format!("Nests on ledge {person}."))
}

fn followers_of(person: usize) -> usize {
    (0..PEOPLE.len())
        .filter(|other| follows(*other).contains(&person))
        .count()
}

/// Whom somebody follows.
fn follows(person: usize) -> Vec<usize> {
    match person {
        0 => vec![1, 2, 3, 4],
        2 => Vec::new(),
        _ => vec![person * 2 % PEOPLE.len(), (person * 2 + 1) % PEOPLE.len()],
    }
}

/// Newest first.
fn posts(person: usize) -> Vec<usize> {
    (1..=person * 3 % 8).rev().collect()
}

fn post_text(person: usize, number: usize) -> String {
    // Words that a block page has as well.
    let end = if number == 2 {
        " Unusual traffic at the cliff!"
    } else {
        ""
    };
    format!("{} saw {number} < 9 gulls.{end}", PEOPLE[person])
}

fn post_us(person: usize, number: usize) -> i64 {
    FIRST_US + DAY_US * (person * 10 + number) as i64
}

fn iso(us: i64) -> String {
    let days = us.div_euclid(DAY_US);
    // Civil date of a day, by Howard Hinnant's algorithm.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let seconds = us.rem_euclid(DAY_US) / 1_000_000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn profile(person: usize, base: &str, name_class: &str) -> String {
    let handle = PEOPLE[person];
    let name = escaped(&name_of(person));
    let about = about_of(person);
    let about = about.map_or_else(String::new, |it| format!("<div class=about>{it}</div>"));
    let followers = followers_of(person);
    format!(
        "<link rel=canonical href='{base}/@{handle}'><h1 class={name_class}>{name}</h1>{about}\
         <p>Followed by <span class=followers data-count={followers}>some</span>"
    )
}

/// The link to the page behind this one, if there is one.
fn next_link(path: &str, page: usize, count: usize) -> String {
    if page * PAGE >= count {
        return String::new();
    }
    format!("<a rel=next href='{path}?page={}'>More</a>", page + 1)
}

fn on_page<T: Copy>(all: &[T], page: usize) -> Vec<T> {
    let items = all.iter().skip((page - 1) * PAGE).take(PAGE);
    items.copied().collect()
}

fn follows_page(person: usize, base: &str, page: usize) -> String {
    let (handle, all) = (PEOPLE[person], follows(person));
    let mut html = "<ul class=people>".to_owned();
    for (place, other) in on_page(&all, page).into_iter().enumerate() {
        let them = PEOPLE[other];
        // One address in many spellings.
        let href = match place {
            0 => format!("/@{them}#posts"),
            1 => format!("{base}/@{them}?from={handle}"),
            _ => format!("../@{them}"),
        };
        let name = escaped(&name_of(other));
        let _ = write!(html, "<li><a href='{href}'> {name}\n</a>");
    }
    html + "</ul>" + &next_link(&format!("/@{handle}/follows"), page, all.len())
}

fn posts_page(person: usize, page: usize) -> String {
    let (handle, all) = (PEOPLE[person], posts(person));
    let mut html = "<ol class=posts>".to_owned();
    for number in on_page(&all, page) {
        let text = escaped(&post_text(person, number));
        let at = iso(post_us(person, number));
        let _ = write!(
            html,
            "<li class=post><p class=text><b>{text}</b></p><time datetime={at}>then</time>\
             <a class=open href='/@{handle}/posts/{number}'>open</a>"
        );
    }
    html + "</ol>" + &next_link(&format!("/@{handle}/posts"), page, all.len())
}

/// One date a month, and always a later page.
fn calendar_page(person: usize, page: usize, later: &str) -> String {
    let handle = PEOPLE[person];
    let at = iso(calendar_us(page));
    format!(
        "<ol class=dates><li><span class=text>Month {page}</span><time datetime={at}>then</time>\
         <a href='/@{handle}/dates/{page}'>open</a></ol>\
         <a rel=next href='/@{handle}/calendar?{later}'>Later</a>"
    )
}

fn calendar_us(page: usize) -> i64 {
    FIRST_US + DAY_US * 30 * page as i64
}

/// What a crawl from Ann has to hold, in the columns of [`super::TABLES`].
pub(super) struct Truth {
    base: String,
    /// Whom it visits.
    visited: BTreeSet<usize>,
}

impl Truth {
    pub(super) fn of(base: &str, depth: usize) -> Self {
        let mut visited = BTreeSet::from([0]);
        for _ in 0..depth {
            let found: Vec<usize> = visited.iter().flat_map(|it| follows(*it)).collect();
            visited.extend(found);
        }
        Self {
            base: base.to_owned(),
            visited,
        }
    }

    pub(super) fn handles(&self) -> impl Iterator<Item = &'static str> {
        self.visited.iter().map(|person| PEOPLE[*person])
    }

    fn id(&self, person: usize) -> String {
        format!("user {}/@{}", self.base, PEOPLE[person])
    }

    pub(super) fn users(&self) -> Rows {
        let mut known = self.visited.clone();
        known.extend(self.visited.iter().flat_map(|it| follows(*it)));
        rows_of(known.into_iter().map(|person| {
            let is_visited = self.visited.contains(&person);
            let seen = |text: String| if is_visited { text } else { String::new() };
            [
                self.id(person),
                seen(PEOPLE[person].to_owned()),
                name_of(person),
                seen(about_of(person).unwrap_or_default()),
                seen(followers_of(person).to_string()),
            ]
        }))
    }

    pub(super) fn relations(&self) -> Rows {
        let pairs = self.visited.iter().flat_map(|person| {
            let others = follows(*person).into_iter();
            others.map(|other| [self.id(*person), self.id(other)])
        });
        rows_of(pairs)
    }

    pub(super) fn statuses(&self) -> Rows {
        let all = self.visited.iter().flat_map(|person| {
            let numbers = posts(*person).into_iter();
            numbers.map(|number| self.post(*person, number))
        });
        rows_of(all)
    }

    fn post(&self, person: usize, number: usize) -> [String; 5] {
        let text = post_text(person, number);
        let url = format!("{}/@{}/posts/{number}", self.base, PEOPLE[person]);
        [
            format!("post {url}"),
            self.id(person),
            text,
            post_us(person, number).to_string(),
            url,
        ]
    }

    /// The first months of the calendars.
    pub(super) fn dates(&self, pages: impl Fn(&str) -> usize) -> Rows {
        let all = self.visited.iter().flat_map(|person| {
            (1..=pages(PEOPLE[*person])).map(move |page| {
                let url = format!("{}/@{}/dates/{page}", self.base, PEOPLE[*person]);
                [
                    format!("post {url}"),
                    self.id(*person),
                    format!("Month {page}"),
                    calendar_us(page).to_string(),
                    url,
                ]
            })
        });
        rows_of(all)
    }

    /// Every page that has to be asked for, once.
    pub(super) fn targets(&self) -> Vec<String> {
        let mut targets = Vec::new();
        for person in &self.visited {
            let handle = PEOPLE[*person];
            targets.push(format!("/@{handle}"));
            let lists = [
                ("follows", follows(*person).len()),
                ("posts", posts(*person).len()),
            ];
            for (list, count) in lists {
                targets.push(format!("/@{handle}/{list}"));
                let more = 2..=count.div_ceil(PAGE).max(1);
                targets.extend(more.map(|page| format!("/@{handle}/{list}?page={page}")));
            }
        }
        targets.sort();
        targets
    }
}
