//! Pages that mean no good: they cost nobody but themselves, and lead nowhere.

use super::site::{Roost, Told};
use super::{ONCE, RELATIONS, Scene, documented, quick_clock, said};
use crate::counterpart::{Counterpart, reply};
use crate::oracle::Rows;
use crate::strict::{Held, rows_of};
use crate::support::{Folder, output_of};
use std::fmt::Write as _;

/// A server that nobody should ever ask.
fn trap() -> Counterpart {
    Counterpart::start(|_, stream| reply(stream, "200 OK", "", b"{}"))
}

/// A profile that says something of somebody, behind something else.
fn profile(head: &str, about: &[u8]) -> Vec<u8> {
    let end = "</p><link rel=canonical href='/@WHO'><h1 class=name>Me</h1><i class=followers data-count=0>";
    [head.as_bytes(), b"<p class=about>", about, end.as_bytes()].concat()
}

fn html_in(charset: &str, body: Vec<u8>) -> Told {
    Told {
        headers: format!("content-type: text/html; charset={charset}\r\n"),
        body,
        ..Told::page("")
    }
}

/// What stands on the page of somebody, if it is not the usual.
fn page_of(handle: &str) -> Option<Told> {
    let deep = || format!("{}{}", "<div>".repeat(100_000), "<b><i>".repeat(50_000));
    let wide = || format!("<p {}>", "a=1 b=2 ".repeat(50_000));
    let mut told = match handle {
        // Longer than any page.
        "bea" => Told::page(profile(&"<!-- -->".repeat(2_500_000), b"Bea")),
        "cid" => Told::page(profile(&deep(), b"Cid")),
        "dot" => Told::page(profile(&wide(), b"Dot")),
        // Nothing is closed, and everything is in the wrong place.
        "eve" => Told::page(
            "<table><tr><svg><h1 class=name>Me<link rel=canonical href=/@WHO>\
             <span class=followers data-count=7 data-count=8><p class=about>Eve <b>of <i>the\
             <script>let x = '</p>'",
        ),
        // Bytes that are not what they are said to be, and a page that contradicts its header.
        "gil" => html_in("utf-8", profile("<meta charset=utf-16>", b"G\xffl")),
        "hal" => html_in("windows-1252", profile("<meta charset=utf-8>", b"H\xe4l")),
        _ => return None,
    };
    let place = told.body.windows(3).position(|it| it == b"WHO")?;
    told.body.splice(place..place + 3, handle.bytes());
    Some(told)
}

#[test]
fn hostile_pages_cost_nobody_but_themselves() {
    let roost = Roost::twisted(|_, target| page_of(target.strip_prefix("/@")?));
    let scene = Scene::new(roost);
    let output = scene.crawl(&format!("--depth 2 {ONCE}"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    scene.assert_nothing_leaked(&output);
    let outcome = |handle: &str, reason: &str| {
        [
            scene.user(handle),
            "too much data".to_owned(),
            reason.to_owned(),
        ]
    };
    let outcomes: Rows = scene.outcomes("profile");
    let told: Vec<(&str, &str)> = outcomes
        .iter()
        .map(|row| (row[0].rsplit('@').next().unwrap_or_default(), &*row[1]))
        .collect();
    assert_eq!(
        told,
        [
            ("bea", "too much data"),
            ("cid", "too much data"),
            ("dot", "too much data")
        ],
        "{outcomes:?}"
    );
    assert!(
        outcomes.contains(outcome("cid", "html nested too deeply").as_slice()),
        "{outcomes:?}"
    );
    let names = "SELECT handle, description, followers_count FROM users
                 WHERE handle IN ('eve', 'gil', 'hal')";
    let expected = [
        [
            "eve",
            "Eve <b>of <i>the<script>let x = '</p>'</script></i></b>",
            "7",
        ],
        ["gil", "G\u{fffd}l", "0"],
        ["hal", "Häl", "0"],
    ];
    assert_eq!(
        scene.held().rows(names),
        rows_of(expected.map(|row| row.map(str::to_owned)))
    );
    // Lists and posts are what they were.
    let truth = scene.truth(2);
    assert_eq!(scene.held().rows(RELATIONS), truth.relations());
    assert_eq!(scene.held().rows(super::STATUSES), truth.statuses());
}

#[test]
fn nothing_is_dialled_but_the_site() {
    let trap = trap();
    let (elsewhere, port) = (
        trap.address.clone(),
        trap.address
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_owned(),
    );
    let roost = Roost::twisted(move |_, target| {
        let links = [
            "javascript:alert(1)".to_owned(),
            "data:text/html,x".to_owned(),
            "file:///etc/passwd".to_owned(),
            "mailto:x@example.org".to_owned(),
            "http://".to_owned(),
            format!("{elsewhere}/@zed"),
            format!("http://localhost:{port}/@yan"),
            format!("//[::1]:{port}/@xia"),
            "http://169.254.169.254/@latest".to_owned(),
        ];
        let links = links.map(|href| format!("<li><a href='{href}'>Somebody</a>"));
        let links = links.concat();
        match target {
            "/@ann/follows" => Some(Told::page(format!(
                "<ul class=people>{links}<li><a href=/@bea>Bea</a></ul><a rel=next href='{elsewhere}/@ann/follows?page=2'>"
            ))),
            "/@ann/posts" => Some(Told::to(&format!("{elsewhere}/@ann/posts"))),
            _ => None,
        }
    });
    let scene = Scene::new(roost);
    let output = scene.crawl(&format!("--depth 1 {ONCE}"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    scene.assert_nothing_leaked(&output);
    let asked: Vec<String> = trap.calls().into_iter().map(|call| call.target).collect();
    assert_eq!(asked, [""; 0]);
    let mut asked = scene.roost.targets();
    asked.sort();
    asked.dedup();
    let pages = ["", "/follows", "/posts"];
    let expected = ["ann", "bea"].map(|who| pages.map(|page| format!("/@{who}{page}")));
    assert_eq!(asked, expected.as_flattened());
    let known = scene.held().rows("SELECT key AS \"@\" FROM users");
    let expected = ["ann", "bea", "cid", "dot"].map(|who| [scene.user(who)]);
    assert_eq!(known, rows_of(expected));
    for (query, outcome, reason) in [
        ("follows", "malformed", "next page on another host"),
        (
            "posts",
            "forbidden",
            "redirect to a host whose robots.txt was not read; name that address instead",
        ),
    ] {
        let row = [scene.user("ann"), outcome.to_owned(), reason.to_owned()];
        assert_eq!(scene.outcomes(query), rows_of([row]));
    }
}

#[test]
fn a_robots_txt_that_leads_to_a_private_address_is_none() {
    let trap = trap();
    let elsewhere = format!("{}/robots.txt", trap.address);
    let roost =
        Roost::twisted(move |_, target| (target == "/robots.txt").then(|| Told::to(&elsewhere)));
    let scene = Scene::new(roost);
    let output = scene.crawl(&format!("--depth 1 {ONCE}"));
    let asked: Vec<String> = trap.calls().into_iter().map(|call| call.target).collect();
    assert_eq!(asked, [""; 0]);
    assert_eq!(scene.roost.targets(), [""; 0], "{}", said(&output));
    // Once for each of what is to be known of Ann.
    assert_eq!(scene.roost.count("GET /robots.txt"), 3);
    assert!(
        said(&output).contains("which is not a public address"),
        "{}",
        said(&output)
    );
}

/// A page with links.
fn page(title: &str, links: &[&str]) -> String {
    let mut html = format!("<title>{title}</title>");
    for href in links {
        let _ = write!(html, "<a href='{href}'>x</a>");
    }
    html
}

/// Pages that lead to one another, to months without end, and to where nobody should go.
fn site_of_pages(elsewhere: String) -> Counterpart {
    Counterpart::start(move |call, stream| {
        let path = call.target.split('?').next().unwrap_or_default();
        let body = match path {
            "/robots.txt" => return reply(stream, "404 Not Found", "", b""),
            "/" => page(
                "Home",
                &[
                    "/a?utm_source=x",
                    "a#top",
                    "./b?y=2&x=1",
                    "/b?x=1&y=2",
                    "javascript:void(0)",
                    "mailto:x@example.org",
                    &format!("{elsewhere}/trap"),
                    "http://10.0.0.1/",
                    "http://[fd00::1]/x",
                    "//user:word@169.254.169.254/",
                    "http:///",
                ],
            ),
            "/a" => page("A", &["/", "/a", "/deep"]),
            "/b" => page("B", &["/month/1"]),
            "/deep" => format!("<title>Deep</title>{}", "<div>".repeat(10_000)),
            month => match month
                .strip_prefix("/month/")
                .and_then(|it| it.parse::<u32>().ok())
            {
                Some(month) => page("Month", &[&format!("/month/{}", month + 1)]),
                None => return reply(stream, "404 Not Found", "", b""),
            },
        };
        reply(
            stream,
            "200 OK",
            "content-type: text/html\r\n",
            body.as_bytes(),
        )
    })
}

/// The second definition of the documentation: every page is a subject.
#[test]
fn pages_lead_to_pages_and_nowhere_else() {
    let trap = trap();
    let site = site_of_pages(trap.address.clone());
    let folder = Folder::new();
    let definition = documented("name = \"pages\"");
    std::fs::write(folder.path("pages.toml"), definition).expect("a definition");
    let mut command = folder.kittiwake();
    let seed = format!("{}/", site.address);
    command.args([
        "crawl",
        "pages.toml",
        &seed,
        "--into",
        "t.db",
        "--depth",
        "4",
    ]);
    command.args(["--contact", "me@example.org"]);
    let clock = quick_clock(200);
    command.args([
        "--until-idle",
        "--quiet",
        "--hosts",
        "any",
        "--clock-from",
        &clock.address,
    ]);
    let output = output_of(&mut command, "");
    println!("{}", said(&output));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let asked: Vec<String> = trap.calls().into_iter().map(|call| call.target).collect();
    assert_eq!(asked, [""; 0]);
    let mut asked: Vec<String> = site.calls().into_iter().map(|call| call.target).collect();
    asked.sort();
    let expected = [
        "/",
        "/a",
        "/b?x=1&y=2",
        "/deep",
        "/month/1",
        "/month/2",
        "/month/3",
        "/robots.txt",
    ];
    assert_eq!(asked, expected);
    let titles = Held::open(&folder)
        .rows("SELECT key AS \"@\", display_name FROM users WHERE display_name <> ''");
    let title =
        |path: &str, title: &str| [format!("page {}{path}", site.address), title.to_owned()];
    let expected = [
        title("/", "Home"),
        title("/a", "A"),
        title("/b?x=1&y=2", "B"),
        title("/month/1", "Month"),
        title("/month/2", "Month"),
        title("/month/3", "Month"),
    ];
    assert_eq!(titles, rows_of(expected));
}
