//! The demo's table: what was collected, what it cost, and beside it what was published.

use kittiwake_engine::CrawlReport;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// One line of the table: a robot, the table whose rows are its records, and Sinawler's figures
/// from Table 1 of the MBCrawler paper, as far as the paper tells them.
struct Line {
    robot: &'static str,
    records: &'static str,
    sinawler_per_call: &'static str,
    sinawler_per_minute: &'static str,
}

const LINES: [Line; 7] = [
    Line {
        robot: "relations",
        records: "user_relations",
        sinawler_per_call: "up to 5000 ids",
        sinawler_per_minute: "118",
    },
    Line {
        robot: "profiles",
        records: "users",
        sinawler_per_call: "1",
        sinawler_per_minute: "20",
    },
    Line {
        robot: "statuses",
        records: "statuses",
        sinawler_per_call: "not told",
        sinawler_per_minute: "102",
    },
    Line {
        robot: "comments",
        records: "comments",
        sinawler_per_call: "not told",
        sinawler_per_minute: "84",
    },
    Line {
        robot: "tags",
        records: "user_tags",
        sinawler_per_call: "not told",
        sinawler_per_minute: "25",
    },
    Line {
        robot: "reposts",
        records: "",
        sinawler_per_call: "",
        sinawler_per_minute: "",
    },
    Line {
        robot: "likes",
        records: "",
        sinawler_per_call: "",
        sinawler_per_minute: "",
    },
];

/// Everything that the demo prints at its end.
pub(crate) fn table(
    report: &CrawlReport,
    violations: u64,
    elapsed: Duration,
    file: &Path,
) -> String {
    let mut text = format!(
        "\n{:<11} {:>8} {:>9} {:>13} {:>18} {:>17}\n",
        "robot", "calls", "records", "records/call", "Sinawler's, a call", "Sinawler's, a min"
    );
    for line in &LINES {
        let Some(done) = report.robots.get(line.robot) else {
            continue;
        };
        // Records are the rows that the robot itself brought; its table may hold more from others.
        let _ = writeln!(
            text,
            "{:<11} {:>8} {:>9} {:>13.1} {:>18} {:>17}",
            line.robot,
            done.calls,
            done.rows_new,
            done.rows_new as f64 / done.calls.max(1) as f64,
            line.sinawler_per_call,
            line.sinawler_per_minute,
        );
    }
    let rows: Vec<String> = LINES
        .iter()
        .filter(|line| !line.records.is_empty())
        .map(|line| line.records)
        .chain(["links", "tags"])
        .filter_map(|table| Some(format!("{} {table}", report.summary.rows.get(table)?)))
        .collect();
    let _ = writeln!(text, "\nThe file holds {}.", rows.join(", "));
    text.push_str(
        "Sinawler's rates a minute are what Weibo's quotas allowed over seven months, and say nothing\n\
         of its speed; a crawl of this very machine may not be held against them. Records per call can.\n\n",
    );
    let _ = writeln!(
        text,
        "{} calls in {:.1} s; {violations} limits broken, counted by the network itself.",
        report.calls,
        elapsed.as_secs_f64(),
    );
    for budget in &report.budgets {
        let _ = writeln!(
            text,
            "allowance {:<10} {:>5.1} % used: {} calls in {} windows of {}",
            budget.budget,
            budget.share() * 100.0,
            budget.calls,
            budget.windows,
            budget.limit,
        );
    }
    text.push_str(&queries(file));
    text
}

/// Where everything is, and three questions to ask it.
fn queries(file: &Path) -> String {
    let shown = file.display();
    let questions = [
        "SELECT handle, followers_count, statuses_count FROM users ORDER BY followers_count DESC LIMIT 5",
        "SELECT name, count(*) AS posts FROM links JOIN tags ON tags.key = to_key WHERE kind = 'tag' GROUP BY name ORDER BY posts DESC LIMIT 5",
        "SELECT substr(text, 1, 60) AS post, (SELECT count(*) FROM comments c WHERE c.status = s.key) AS comments FROM statuses s ORDER BY comments DESC LIMIT 5",
    ];
    let mut text = format!("\nEverything is in {shown}. Ask it:\n");
    for question in questions {
        let _ = writeln!(text, "  sqlite3 {shown} \"{question}\"");
    }
    let _ = writeln!(text, "  kittiwake report {shown}");
    text
}
