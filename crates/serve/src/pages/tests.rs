//! Pages that are drawn from the picture of the crawl alone, whatever is in it.

use super::frame::{Frame, Sheet};
use super::{budgets, freshness, overview, robots};
use crate::standing::{
    BudgetStanding, FreshnessFigures, LaneFreshness, Message, NextVisit, OutcomeCount, PacePoint,
    RobotStanding, RobotState, RunStanding, Standing,
};
use maud::html;

const HOSTILE: &str =
    "\"'><script>alert(1)</script><svg onload=alert(1)><style>*{display:none}</style>";

/// A crawl in which every text is the same.
fn standing(text: &str) -> Standing {
    let text = || text.to_owned();
    let robot = |state| RobotStanding {
        name: text(),
        state,
        queries: vec![text()],
        last: Some(message(&text())),
        ..RobotStanding::default()
    };
    let figures = FreshnessFigures {
        people: 3,
        age_hours: Some(f64::NAN),
        share_within_hour: Some(f64::INFINITY),
        ..FreshnessFigures::default()
    };
    Standing {
        place: text(),
        crawling: true,
        run: Some(RunStanding {
            network: text(),
            host: text(),
            clock: text(),
            end_reason: Some(text()),
            ..RunStanding::default()
        }),
        robots: [RobotState::Running, RobotState::Paused, RobotState::Stopped]
            .map(robot)
            .to_vec(),
        budgets: vec![BudgetStanding {
            id: text(),
            used: 5,
            limit: 0,
            unit: Some(text()),
            shut_until_us: Some(i64::MAX),
            ..BudgetStanding::default()
        }],
        freshness: vec![LaneFreshness {
            lane: text(),
            policy: text(),
            everybody: figures,
            classes: [(text(), figures)].into(),
        }],
        outcomes: vec![OutcomeCount {
            outcome: text(),
            is_failure: true,
            calls: 1,
        }],
        next: vec![NextVisit {
            robot: text(),
            subject: text(),
            why: text(),
            due_us: i64::MIN,
            is_revisit: true,
        }],
        pace: vec![PacePoint::default(); 3],
        rows: [("users".to_owned(), u64::MAX)].into(),
        trouble: Some(text()),
        ..Standing::default()
    }
}

fn message(text: &str) -> Message {
    Message {
        log: text.to_owned(),
        subject: text.to_owned(),
        outcome: text.to_owned(),
        text: text.to_owned(),
        is_failure: true,
        ..Message::default()
    }
}

fn sheets(frame: &Frame, text: &str) -> Vec<Sheet> {
    vec![
        overview::sheet(frame),
        robots::sheet(frame, |_| vec![message(text)]),
        budgets::sheet(frame),
        freshness::sheet(frame, &html! {}),
    ]
}

#[test]
fn whatever_a_crawl_has_met_is_shown_as_text() {
    let frame = Frame::of(standing(HOSTILE));
    for sheet in sheets(&frame, HOSTILE) {
        let page = frame.show(&sheet).0;
        assert!(page.contains("&lt;script&gt;"), "{}", sheet.title);
        for sign in ["<script>", "<svg onload", "<style", "\"'>"] {
            assert!(!page.contains(sign), "{sign} on {}", sheet.title);
        }
    }
}

#[test]
fn a_place_without_a_crawl_says_what_to_do() {
    let frame = Frame::of(Standing::default());
    for sheet in sheets(&frame, "") {
        let page = frame.show(&sheet).0;
        assert!(page.contains("class=\"empty\""), "{}", sheet.title);
        assert!(!page.contains("NaN"), "{}", sheet.title);
    }
}

#[test]
fn who_may_only_look_has_no_buttons_that_steer() {
    let mut frame = Frame::of(standing("gulls"));
    let steers = |frame: &Frame| {
        let sheets = sheets(frame, "gulls");
        let pages = sheets.iter().map(|sheet| frame.show(sheet).0);
        pages
            .filter(|page| page.contains("name=\"command\""))
            .count()
    };
    assert_eq!(steers(&frame), 2);
    frame.caller.role = crate::Role::Viewer;
    assert_eq!(steers(&frame), 0);
}

#[test]
fn no_page_has_an_inline_style_or_script() {
    let frame = Frame::of(standing("gulls"));
    for sheet in sheets(&frame, "gulls") {
        let page = frame.show(&sheet).0;
        assert!(
            !page.contains(" style=") && !page.contains(" onclick="),
            "{}",
            sheet.title
        );
        assert_eq!(page.matches("<script").count(), 1, "{}", sheet.title);
    }
}
