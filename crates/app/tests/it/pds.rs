//! Log-ins at the real PDS, the server that Bluesky's accounts live on, and crawls with its sessions.

use crate::atproto::Servers;
use crate::support::{Folder, open, output_of, rows, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Output;

/// The servers let an access token be good for two hours, and a renewal token for two more once it
/// was used.
const TOKEN_LIFE_S: i64 = 2 * 3_600;

const HANDLE: &str = "ada.test";
const PASSWORD: &str = "planted-password-0001";

const DEFINITION: &str = r#"format = 1
name = "pds"
verified_on = "2026-11-16"
host = { kind = "instance" }

[auth.methods.session]
kind = "session"
create = "/xrpc/com.atproto.server.createSession"
refresh = "/xrpc/com.atproto.server.refreshSession"
parameters = { identifier = "{identifier}", password = "{password}" }
answer = { access = "accessJwt", refresh = "refreshJwt", account = "handle" }
test = { path = "/xrpc/com.atproto.server.getSession", account = "handle" }

[limit_headers]
limit = "ratelimit-limit"
remaining = "ratelimit-remaining"
reset = "ratelimit-reset"
reset_format = "epoch_s"

[budgets.overall]
scope = "ip"
kind = "from_first"
limit = 3000
window = "5m"

[types.user]
table = "users"
canonical = ".did"

[types.user.fields.card]
handle = ".handle"

[types.post]
table = "statuses"
canonical = ".uri"

[types.post.fields.content]
text = ".value.text"
created_us = ".value.createdAt"

[queries.session]
subject = "user"
path = "/xrpc/com.atproto.server.getSession"
auth = "required"
selects = [{ at = ".", as = "user", is_subject = true }]

[queries.posts]
subject = "user"
path = "/xrpc/com.atproto.repo.listRecords"
parameters = { repo = "{canonical}", collection = "app.bsky.feed.post", limit = "100" }
auth = "required"
selects = [{ at = ".records[]", as = "post" }]

[[robots]]
name = "profiles"
subject = "user"
steps = [{ query = "session" }]

[[robots]]
name = "posts"
subject = "user"
steps = [{ query = "posts" }]

[[seeds]]
pattern = "did:plc:{id}"
type = "user"
value = "did:plc:{id}"

[[errors]]
status = 400
match = '.error == "ExpiredToken" or .error == "InvalidToken"'
outcome = "auth expired"
"#;

/// The servers, with one account, and a folder of crawls.
struct Pds {
    servers: Servers,
    folder: Folder,
    did: String,
}

impl Pds {
    /// Starts them, with one account and three posts; nothing where they are not installed.
    fn start() -> Option<Self> {
        let servers = Servers::start(None)?;
        let account = format!("account?handle={HANDLE}&password={PASSWORD}&posts=3");
        let made = servers.tell(&account);
        let pds = Self {
            did: made["did"].as_str().expect("an id").to_owned(),
            servers,
            folder: Folder::new(),
        };
        let definition = pds.folder.path("pds.toml");
        std::fs::write(definition, DEFINITION).expect("a definition");
        let made = pds.folder.say("auth key vault.key");
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        Some(pds)
    }

    fn tell(&self, what: &str) -> Value {
        self.servers.tell(what)
    }

    /// Sets the servers' clock, from now on so many seconds ahead of ours.
    fn set_clock_ahead(&self, seconds: i64) {
        self.tell(&format!("clock?ahead={seconds}"));
    }

    /// How often sessions were begun, and how often renewed.
    fn sessions(&self) -> (u64, u64) {
        let calls = self.tell("calls");
        let count = |name: &str| calls[format!("com.atproto.server.{name}")].as_u64();
        let count = |name| count(name).unwrap_or(0);
        (count("createSession"), count("refreshSession"))
    }

    fn run(&self, words: &str, input: &str) -> Output {
        let mut command = self.folder.kittiwake();
        command.args(words.split_whitespace()).args([
            "--host",
            &self.servers.pds,
            "--key-file",
            "vault.key",
        ]);
        output_of(&mut command, input)
    }

    fn login(&self, password: &str) -> Output {
        self.run("login pds.toml", &format!("{HANDLE}\n{password}\n"))
    }

    fn crawl(&self, file: &str) -> Output {
        let words = format!(
            "crawl pds.toml {} --into {file} --until-idle --quiet --json",
            self.did
        );
        self.run(&words, "")
    }

    /// A crawl into a new file that ends well and finds all there is.
    #[track_caller]
    fn assert_crawls(&self, file: &str) {
        let crawl = self.crawl(file);
        assert_done(&crawl);
        let said: Value = serde_json::from_slice(&crawl.stdout).expect("JSON");
        assert_eq!(said["violations"], 0, "{said}");
        let file = open(&self.folder.path(file));
        let sql = "SELECT i.id, u.handle FROM users u JOIN ids i ON i.key = u.key AND i.canonical";
        let users = rows(&file, sql);
        assert_eq!(users, [vec![self.did.clone(), HANDLE.to_owned()]].into());
        let posts = rows(&file, "SELECT text FROM statuses");
        let expected: BTreeSet<_> = (0..3).map(|it| vec![format!("post {it}")]).collect();
        assert_eq!(posts, expected);
        let outcomes = rows(&file, "SELECT query, outcome FROM outcomes");
        let both = ["posts", "session"].map(|query| vec![query.to_owned(), "ok".to_owned()]);
        assert_eq!(outcomes, both.into());
    }

    /// Nothing of these secrets stands in any file.
    fn assert_nothing_kept(&self, secrets: &[&str]) {
        let mut folders = vec![self.folder.path(".")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).expect("a file");
                for secret in secrets {
                    let found = bytes
                        .windows(secret.len())
                        .any(|it| it == secret.as_bytes());
                    assert!(!found, "a secret is in {}", path.display());
                }
            }
        }
    }
}

#[track_caller]
fn assert_done(output: &Output) {
    let said = text(&output.stderr);
    let code = output.status.code();
    assert_eq!(code, Some(0), "{said}{}", text(&output.stdout));
}

#[track_caller]
fn assert_refused(output: &Output, word: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains(word), "{said}");
}

#[test]
fn a_session_of_the_real_server_is_kept_renewed_and_rotated() {
    let Some(pds) = Pds::start() else {
        return;
    };
    let wrong = pds.login("planted-but-wrong");
    assert_refused(&wrong, "AuthenticationRequired");
    assert!(text(&wrong.stderr).contains("no credential was stored"));
    let login = pds.login(PASSWORD);
    assert_done(&login);
    assert!(text(&login.stdout).contains(HANDLE));
    assert_eq!(pds.sessions(), (2, 0));

    // One log-in serves every command that follows.
    let tested = pds.run("auth test pds.toml", "");
    assert_done(&tested);
    assert!(text(&tested.stdout).contains(HANDLE));
    pds.assert_crawls("a.db");
    pds.assert_crawls("b.db");
    assert_eq!(pds.sessions(), (2, 0), "sessions are kept");

    // Its token expires, which the server says with 400.
    pds.set_clock_ahead(TOKEN_LIFE_S + 60);
    pds.assert_crawls("c.db");
    assert_eq!(pds.sessions(), (2, 1), "renewed, and not begun anew");
    pds.assert_crawls("d.db");
    assert_eq!(pds.sessions(), (2, 1), "what came of it is kept");

    // Another life later the first renewal token is worth nothing: the second one was saved.
    pds.set_clock_ahead(3 * TOKEN_LIFE_S);
    let tested = pds.run("auth test pds.toml", "");
    assert_done(&tested);
    assert_eq!(pds.sessions(), (2, 2));
    pds.assert_crawls("e.db");
    assert_eq!(pds.sessions(), (2, 2));
    // JSON web tokens begin with what they are.
    pds.assert_nothing_kept(&[PASSWORD, "planted-but-wrong", "eyJ0eXAi"]);
}

#[test]
fn what_was_revoked_at_the_real_server_is_begun_anew_or_given_up() {
    let Some(pds) = Pds::start() else {
        return;
    };
    let name = "kittiwake";
    let made = pds.tell(&format!("appPassword?handle={HANDLE}&name={name}"));
    let password = made["password"].as_str().expect("a password");
    assert_done(&pds.login(password));
    pds.assert_crawls("a.db");
    assert_eq!(pds.sessions(), (1, 0));

    // Somebody ends the session, but the password is still good.
    assert_eq!(pds.tell("deleteSession")["status"], 200);
    pds.set_clock_ahead(TOKEN_LIFE_S + 60);
    pds.assert_crawls("b.db");
    assert_eq!(pds.sessions(), (2, 1), "it could not be renewed");

    // The owner takes the password back: nothing that was given out is good any more.
    pds.tell(&format!("revokeAppPassword?handle={HANDLE}&name={name}"));
    pds.set_clock_ahead(2 * TOKEN_LIFE_S + 120);
    let crawl = pds.crawl("c.db");
    assert_eq!(crawl.status.code(), Some(4), "{}", text(&crawl.stderr));
    let said: Value = serde_json::from_slice(&crawl.stdout).expect("JSON");
    assert_eq!(said["violations"], 0, "{said}");
    assert_eq!(said["end"]["reason"], "auth_expired");
    let detail = said["end"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("AuthenticationRequired"), "{said}");
    // The list of posts is open to everybody, whatever token they show.
    let file = open(&pds.folder.path("c.db"));
    let sql = "SELECT outcome FROM outcomes WHERE query = 'session'";
    assert_eq!(rows(&file, sql), [vec!["auth expired".to_owned()]].into());
    drop(file);
    assert_eq!(pds.sessions(), (3, 2), "it is tried once");
    let tested = pds.run("auth test pds.toml", "");
    assert_refused(&tested, "not accepted");

    // With another log-in the same command goes on.
    assert_done(&pds.login(PASSWORD));
    pds.assert_crawls("c.db");
    pds.assert_nothing_kept(&[PASSWORD, password, "eyJ0eXAi"]);
}
