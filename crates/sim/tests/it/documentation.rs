//! The documentation names every kind of fault, every table and every page.

use std::path::Path;

use kittiwake_sim::{DeclaredLimits, Limits, SimConfig};

use crate::client::{AT_US, Sim, now_us};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sim.md");
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn every_kind_of_fault_is_documented_with_its_class() {
    let document = document();
    let sim = Sim::frozen(50, 1).await;
    let summary = sim.get("/_sim/faults/summary").await.json();
    let kinds = summary["by_kind"].as_object().unwrap();
    for kind in kinds.keys() {
        assert!(document.contains(&format!("\n| `{kind}` | ")), "{kind}");
    }
    let rows = ["transport", "page", "world"].map(|class| {
        let row = format!("` | {class} |");
        document.matches(&row).count()
    });
    assert_eq!(rows, [20, 4, 3]);
    assert_eq!(kinds.len(), 27);
}

#[tokio::test]
async fn every_documented_page_and_table_is_there() {
    let document = document();
    let sim = Sim::frozen(50, 1).await;
    let (_, pages) = document.split_once("## `/_sim`: what it knows").unwrap();
    let (pages, tables) = pages.split_once("The tables of the truth:").unwrap();
    let (tables, _) = tables.split_once("## Faults").unwrap();
    let first_cells = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .map(|line| line.split('`').next().unwrap().to_owned())
            .collect()
    };
    let tables = first_cells(tables);
    assert_eq!(tables.len(), 9);
    for table in &tables {
        let reply = sim.get(&format!("/_sim/truth/{table}?limit=1")).await;
        assert_eq!((reply.status, reply.lines().len()), (200, 1), "{table}");
    }
    let pages = first_cells(pages);
    assert_eq!(pages.len(), 8);
    for page in &pages {
        let filled = page
            .replace("TABLE", &tables[0])
            .replace("after=SEQ&", "")
            .replace("after=TOKEN&", "")
            .replace("&at_us=T", "")
            .replace("_us=T", "_us=1")
            .replace("=N", "=1");
        assert_eq!(sim.get(&filled).await.status, 200, "{page}");
    }
}

#[test]
fn every_query_that_limits_can_be_for_is_documented() {
    let document = document();
    let unknown = "[[bucket]]\nname = \"a\"\nscope = \"ip\"\nkind = \"concurrency\"\nlimit = 1\n\
                   queries = [\"?\"]";
    let told = DeclaredLimits::parse(unknown).unwrap_err().to_string();
    let (_, queries) = told.split_once("write one of ").unwrap();
    let queries: Vec<String> = queries
        .split(", ")
        .map(|name| format!("`{name}`"))
        .collect();
    assert!(document.contains(&queries.join(", ")), "{queries:?}");
}

#[tokio::test]
async fn the_documented_limits_are_accepted_and_kept() {
    let document = document();
    let (_, example) = document.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let mut config = SimConfig::frozen(50, 1, AT_US, now_us());
    config.limits = Limits::Declared(DeclaredLimits::parse(example).unwrap());
    let sim = Sim::start(config).await;
    sim.get_as("/api/v2/search?q=a", Some("x/ann:1")).await;
    let status = sim.get_as("/api/v1/limits", Some("x/ann:1")).await.json();
    let remaining = |name: &str| status["resources"][name]["remaining"].as_u64().unwrap();
    assert_eq!(
        ["endpoint/search", "endpoint/lookup", "quota", "at-once"].map(remaining),
        [179, 180, 9_900, 5]
    );
}
