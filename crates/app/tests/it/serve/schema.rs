//! The whole API, driven by its own description: schemathesis tries what a person would not think of.

use super::{plain_server, small_crawl};
use crate::support::text;
use std::process::Command;

/// Examples of each operation.
const EXAMPLES: &str = "15";

#[test]
fn whatever_the_description_allows_is_answered_as_it_says() {
    let Some(program) = std::env::var_os("KITTIWAKE_TEST_SCHEMATHESIS") else {
        println!("skipped: schemathesis is not installed; ./test installs it");
        return;
    };
    let (folder, _sim) = small_crawl();
    let server = plain_server(&folder);
    let mut command = Command::new(program);
    command
        .current_dir(folder.path(""))
        .args(["run", "--max-examples", EXAMPLES, "--workers", "2", "--seed", "7"])
        .args(["--phases", "examples,coverage,fuzzing", "--mode", "all", "--no-color"])
        // What browsers report has a form of its own; streams do not end; what is asked of the network itself
        // is tested elsewhere.
        .args(["--exclude-path", "/api/reports"])
        .args(["--exclude-path", "/api/live", "--exclude-path", "/api/subscribe"])
        .args(["--exclude-path", "/api/search/online", "--exclude-path", "/api/logins"])
        // As a page of our own would: otherwise whatever changes something without a body is refused as foreign.
        .args(["--header", &format!("Origin: {}", server.origin())])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
        .arg(format!("{}/api/openapi.json", server.origin()));
    let tried = command.output().expect("schemathesis runs");
    assert!(
        tried.status.success(),
        "{}\n{}",
        text(&tried.stdout),
        text(&tried.stderr)
    );
    assert_eq!(server.get("/healthz").status, 200);
}
