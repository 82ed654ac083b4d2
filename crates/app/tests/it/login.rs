//! Log-ins over real sockets, against a network that is strict about them, and crawls with what they
//! brought.

use crate::authority::{
    API_KEY, Authority, CLIENT_ID, CLIENT_SECRET, CONSUMER_KEY, CONSUMER_SECRET, PASSWORD, PLANTED,
    Style, TOKEN, TOKEN_SECRET,
};
use crate::support::{Folder, open, rows, text};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A small network: one robot needs a credential, the other sends none.
const DEFINITION: &str = r#"format = 1
name = "tiny"
verified_on = "2026-11-15"
host = { kind = "fixed", address = "https://api.tiny.example" }

[limit_headers]
limit = "x-limit"
remaining = "x-left"
reset = "x-reset"
reset_format = "iso8601"

[types.user]
table = "users"
canonical = ".id"

[types.user.fields.card]
handle = ".name"

[queries.user]
subject = "user"
path = "/users/{canonical}"
parameters = { fields = "a b+c" }
auth = "required"
scope = "users.read"
selects = [{ at = ".", as = "user", is_subject = true }]

[queries.open]
subject = "user"
path = "/open/{canonical}"
auth = "none"
scope = "never.asked"
selects = [{ at = ".", as = "user", is_subject = true }]

[[robots]]
name = "profiles"
subject = "user"
steps = [{ query = "user" }]

[[robots]]
name = "open"
subject = "user"
steps = [{ query = "open" }]

[[seeds]]
pattern = "id:{id}"
type = "user"
value = "{id}"

[[errors]]
status = 400
match = '.error == "ExpiredToken"'
outcome = "auth expired"
"#;

const TEST: &str = "test = { path = \"/me\", account = \"acct\" }\n";
const CODE: &str = "[auth.methods.user]\nkind = \"code\"\nauthorize = \"/oauth/authorize\"\n\
                    token = \"/oauth/token\"\nscopes = [\"offline.access\"]\n";
const SESSION: &str = "[auth.methods.session]\nkind = \"session\"\ncreate = \"/session/create\"\n\
     refresh = \"/session/refresh\"\n\
     parameters = { identifier = \"{identifier}\", password = \"{password}\" }\n\
     answer = { access = \"accessJwt\", refresh = \"refreshJwt\", account = \"handle\" }\n";
const REGISTER: &str = "register = { path = \"/api/v1/apps\", parameters = { client_name = \"Kittiwake\", \
     redirect_uris = \"{redirect}\", scopes = \"{scopes}\" } }\n";

/// A folder with the small network, a key for the vault, and the network itself.
struct Scene {
    folder: Folder,
    authority: Authority,
}

impl Scene {
    fn new(authority: Authority, auth: &str) -> Self {
        let folder = Folder::new();
        let definition = format!("{DEFINITION}\n{auth}");
        std::fs::write(folder.path("tiny.toml"), definition).expect("a definition");
        let made = folder.say("auth key vault.key");
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        Self { folder, authority }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = self.folder.kittiwake();
        command.args(words.split_whitespace());
        command.args(["--key-file", "vault.key"]);
        command
    }

    fn login_command(&self, words: &str) -> Command {
        let address = &self.authority.address;
        self.command(&format!("login tiny.toml --host {address} {words}"))
    }

    /// A log-in whose secrets come from standard input.
    fn login(&self, words: &str, input: &str) -> Output {
        with_input(&mut self.login_command(words), input)
    }

    fn crawl_command(&self, words: &str) -> Command {
        let address = &self.authority.address;
        self.command(&format!(
            "crawl tiny.toml --host {address} --into t.db --quiet --limits off {words}"
        ))
    }

    fn crawl(&self, words: &str) -> Output {
        let crawl = self.crawl_command(words).output();
        crawl.expect("the binary runs")
    }

    fn say(&self, words: &str) -> Output {
        self.command(words).output().expect("the binary runs")
    }

    fn outcomes(&self) -> Vec<Vec<String>> {
        let file = open(&self.folder.path("t.db"));
        let found = rows(&file, "SELECT query, key, outcome FROM outcomes");
        found.into_iter().collect()
    }

    /// Nothing of any secret is in what was said, or in any file but the vault's key.
    fn assert_nothing_leaked(&self, outputs: &[&Output]) {
        for output in outputs {
            for said in [&output.stdout, &output.stderr] {
                let said = text(said);
                assert!(!said.contains(PLANTED), "{said}");
            }
        }
        search(&self.folder.path("."));
    }
}

pub(crate) fn search(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            search(&path);
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let wanted = PLANTED.as_bytes();
        let is_there = bytes.windows(wanted.len()).any(|part| part == wanted);
        assert!(!is_there, "a secret is in {}", path.display());
    }
}

fn with_input(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // It may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[track_caller]
fn assert_done(output: &Output) {
    let said = text(&output.stderr);
    assert_eq!(code(output), Some(0), "{said}{}", text(&output.stdout));
}

/// A browser: one GET, without following.
fn browse(address: &str) -> (String, String) {
    let url = url::Url::parse(address).expect("an address");
    let host = url.host_str().expect("a host");
    let port = url.port_or_known_default().expect("a port");
    let mut stream = TcpStream::connect((host, port)).expect("a connection");
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n"
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

fn location(head: &str) -> String {
    let mut lines = head.lines();
    let line = lines.find(|line| line.to_ascii_lowercase().starts_with("location: "));
    line.expect("a redirect")[10..].to_owned()
}

/// A log-in that waits for a browser.
struct Waiting {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Waiting {
    fn start(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        stdin.write_all(input.as_bytes()).expect("its input");
        child.stdin = Some(stdin);
        let mut stderr = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let count = stderr.read_line(&mut line).expect("text");
            assert!(count > 0, "it ended: {said}");
            if line.starts_with("http") {
                break line.trim().to_owned();
            }
            said.push_str(&line);
        };
        Self {
            child,
            stderr,
            address,
        }
    }

    /// Waits for its end; what it said after the address.
    fn finish(mut self, input: &str) -> (Option<i32>, String, String) {
        let mut stdin = self.child.stdin.take().expect("its input");
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), text(&output.stdout), said)
    }
}

const CLIENT: &str = concat!(
    "planted-client-0001",
    "\n",
    "planted-client-secret/+0002",
    "\n"
);

#[test]
fn a_static_token_is_read_from_standard_input_and_used() {
    let scene = Scene::new(Authority::start(Style::Bearer), "");
    let login = scene.login("--token --name mine", &format!("{API_KEY}\n"));
    assert_done(&login);
    let crawl = scene.crawl("id:1 id:2 --until-idle");
    assert_done(&crawl);
    assert_eq!(scene.outcomes().len(), 4);
    let list = scene.say("auth list --json");
    let listed: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    assert_eq!(listed["name"], "mine");
    assert_eq!(listed["sent_to"][0], scene.authority.address);
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&login, &crawl, &list]);
    // The token is no argument: whoever looks at the list of processes would see it.
    let on_the_line = scene.login(&format!("--token {API_KEY}"), "");
    assert_eq!(code(&on_the_line), Some(2));
}

#[test]
fn a_key_in_the_query_stands_in_no_log_and_no_file() {
    let auth = format!(
        "[auth.methods.key]\nkind = \"token\"\nsend = {{ query = \"key\" }}\n{TEST}\
         variables = [\"TINY_API_KEY\"]\n"
    );
    let scene = Scene::new(Authority::start(Style::Key), &auth);
    let login = scene.login("", &format!("{API_KEY}\n"));
    assert_done(&login);
    assert!(text(&login.stdout).contains("ada"), "named by the test");
    let crawl = scene.crawl("id:1 --until-idle --raw");
    assert_done(&crawl);
    let file = open(&scene.folder.path("t.db"));
    let targets = rows(&file, "SELECT target FROM query_log WHERE query = 'user'");
    let target = "/users/1?fields=a+b%2Bc".to_owned();
    assert_eq!(targets, [vec![target]].into());
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&login, &crawl]);
    // Without a vault, from the variable that the definition names.
    let from_variable = scene
        .crawl_command("id:2 --until-idle")
        .env("XDG_CONFIG_HOME", scene.folder.path("nothing"))
        .env("TINY_API_KEY", API_KEY)
        .output()
        .expect("the binary runs");
    assert_done(&from_variable);
    scene.assert_nothing_leaked(&[&from_variable]);
}

#[test]
fn requests_are_signed_with_oauth_1() {
    let auth = format!("[auth.methods.signed]\nkind = \"oauth1\"\n{TEST}");
    let scene = Scene::new(Authority::start(Style::OAuth1), &auth);
    let keys = [CONSUMER_KEY, CONSUMER_SECRET, TOKEN, TOKEN_SECRET].join("\n");
    let login = scene.login("", &keys);
    assert_done(&login);
    let crawl = scene.crawl("id:1 id:2 id:3 --until-idle");
    assert_done(&crawl);
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&login, &crawl]);
    // A wrong key is found out, and not kept.
    let wrong = [CONSUMER_KEY, "planted-wrong", TOKEN, TOKEN_SECRET].join("\n");
    let refused = scene.login("--name other", &wrong);
    assert_eq!(code(&refused), Some(4), "{}", text(&refused.stderr));
    assert!(!text(&scene.say("auth list").stdout).contains("other"));
    scene.assert_nothing_leaked(&[&refused]);
}

#[test]
fn an_application_speaks_for_itself_and_is_renewed() {
    let auth = "[auth.methods.app]\nkind = \"client_credentials\"\ntoken = \"/oauth/token\"\n\
                client_auth = \"basic\"\n";
    let authority = Authority::start(Style::Bearer).with_client(&[], "users.read");
    authority.knows().basic = true;
    let scene = Scene::new(authority, auth);
    let login = scene.login("", CLIENT);
    assert_done(&login);
    scene.authority.expire_all();
    let crawl = scene.crawl("id:1 --until-idle");
    assert_done(&crawl);
    scene.authority.assert_no_complaints();
    let wrong = scene.login(
        "--name other",
        &format!("{CLIENT_ID}\nplanted-wrong-secret\n"),
    );
    assert_eq!(code(&wrong), Some(4));
    assert!(text(&wrong.stderr).contains("no credential was stored"));
    scene.assert_nothing_leaked(&[&login, &crawl, &wrong]);
}

#[test]
fn a_session_follows_its_lexicon() {
    let authority = Authority::start(Style::Bearer);
    authority.knows().says_expired_with_400 = true;
    let scene = Scene::new(authority, SESSION);
    let wrong = scene.login("", "ada\nplanted but wrong\n");
    assert_eq!(code(&wrong), Some(4));
    assert!(text(&wrong.stderr).contains("AuthenticationRequired"));
    let login = scene.login("", &format!("ada\n{PASSWORD}\n"));
    assert_done(&login);
    assert!(text(&login.stdout).contains("ada.example"));
    // 400 ExpiredToken is no limit: the session is renewed, and goes on.
    scene.authority.expire_all();
    let crawl = scene.crawl("id:1 --until-idle --json");
    assert_done(&crawl);
    assert_eq!(scene.authority.calls_to("/session/refresh"), 1);
    assert_eq!(scene.authority.calls_to("/session/create"), 2);
    let said: Value = serde_json::from_slice(&crawl.stdout).expect("JSON");
    assert_eq!(said["violations"], 0, "{said}");
    // When nothing that was given out is good any more, a new session is begun.
    scene.authority.revoke_all();
    assert_done(&scene.crawl("id:2 --until-idle"));
    assert_eq!(scene.authority.calls_to("/session/create"), 3);
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&wrong, &login, &crawl]);
}

#[test]
fn a_device_code_is_asked_for_until_somebody_decides() {
    let auth = "[auth.methods.device]\nkind = \"device\"\ndevice = \"/device\"\n\
                token = \"/oauth/token\"\n";
    let authority = Authority::start(Style::Bearer).with_client(&[], "users.read");
    authority.knows().device_answers = vec!["authorization_pending"];
    let scene = Scene::new(authority, auth);
    let login = scene.login("", CLIENT);
    assert_done(&login);
    assert!(text(&login.stderr).contains("GULL-0001"));
    assert_done(&scene.crawl("id:1 --until-idle"));
    scene.authority.assert_no_complaints();
    scene.authority.knows().device_answers = vec!["access_denied"];
    let denied = scene.login("--name other", CLIENT);
    assert_eq!(code(&denied), Some(4));
    scene.assert_nothing_leaked(&[&login, &denied]);
}

#[test]
fn a_code_with_a_proof_is_redeemed_once_and_renewed_by_rotation() {
    let authority =
        Authority::start(Style::Bearer).with_client(&[], "users.read offline.access never.asked");
    let scene = Scene::new(authority, &format!("{CODE}{TEST}"));
    let waiting = Waiting::start(&mut scene.login_command("--json"), CLIENT);
    let asked = url::Url::parse(&waiting.address).expect("an address");
    let get = |name: &str| {
        let found = asked.query_pairs().find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).expect(name)
    };
    // The least that is needed: the robot that sends no credential needs no permission.
    assert_eq!(get("scope"), "offline.access users.read");
    let redirect = get("redirect_uri");
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
    scene.authority.knows().redirects.push(redirect.clone());
    // Somebody else's visit is no log-in.
    assert!(browse(&redirect).0.starts_with("HTTP/1.1 404"));
    let (head, _) = browse(&waiting.address);
    let (end, page) = browse(&location(&head));
    assert!(end.starts_with("HTTP/1.1 200"), "{end}");
    assert!(page.contains("Logged in"));
    let (status, said, noted) = waiting.finish("");
    assert_eq!(status, Some(0), "{noted}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["name"], "ada");
    assert_eq!(said["scopes"][0], "offline.access");
    assert!(!said.to_string().contains(PLANTED) && !noted.contains(PLANTED));

    // Expired tokens are renewed, and the token that renews is a new one every time.
    for id in 1..=3 {
        scene.authority.expire_all();
        assert_done(&scene.crawl(&format!("id:{id} --until-idle")));
    }
    let test = scene.say(&format!(
        "auth test tiny.toml --host {}",
        scene.authority.address
    ));
    assert_done(&test);
    let shown = text(&test.stdout);
    assert!(
        shown.contains("knows ada") && shown.contains("x-left: 299"),
        "{shown}"
    );
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&test]);
}

#[test]
fn a_token_is_renewed_before_it_expires() {
    let authority = Authority::start(Style::Bearer)
        .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
    // It expires at once, in its server's words; the server itself would still take it.
    authority.knows().life_s = Some(1);
    let scene = Scene::new(authority, CODE);
    let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
    let (head, _) = browse(&waiting.address);
    let (status, _, noted) = waiting.finish(&format!("{}\n", location(&head)));
    assert_eq!(status, Some(0), "{noted}");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let before = scene.authority.calls_to("/oauth/token");
    scene.authority.knows().life_s = Some(3_600);
    assert_done(&scene.crawl("id:1 --until-idle"));
    assert_eq!(scene.authority.calls_to("/oauth/token"), before + 1);
    assert_eq!(
        scene.authority.calls_to("/users/1"),
        1,
        "no call was refused"
    );
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[]);
}

#[test]
fn a_redirect_with_a_wrong_state_stores_nothing() {
    for paste in [false, true] {
        let authority = Authority::start(Style::Bearer)
            .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
        let scene = Scene::new(authority, CODE);
        let words = if paste { "--paste" } else { "" };
        let waiting = Waiting::start(&mut scene.login_command(words), CLIENT);
        let asked = url::Url::parse(&waiting.address).expect("an address");
        let redirect = asked.query_pairs().find(|(key, _)| key == "redirect_uri");
        let redirect = redirect.expect("a redirect").1.into_owned();
        let wrong = format!("{redirect}?code=planted-of-another&state=wrong");
        let mut input = String::new();
        if paste {
            input = format!("{wrong}\n");
        } else {
            assert!(browse(&wrong).0.starts_with("HTTP/1.1 400"));
        }
        let (status, said, noted) = waiting.finish(&input);
        assert_eq!(status, Some(4), "{noted}");
        assert!(noted.contains("belongs to another log-in"), "{noted}");
        assert!(!format!("{said}{noted}").contains(PLANTED));
        assert_eq!(scene.authority.calls_to("/oauth/token"), 0);
        assert_eq!(text(&scene.say("auth list").stdout), "");
        scene.assert_nothing_leaked(&[]);
    }
}

/// Mastodon's own definition: an application registers itself, a person allows it, and a later
/// log-in uses the application again.
#[test]
fn mastodon_registers_and_logs_in_from_end_to_end() {
    let scene = Scene::new(Authority::start(Style::Bearer), "");
    let command = || {
        let address = &scene.authority.address;
        scene.command(&format!(
            "login mastodon --host {address} --robots profiles"
        ))
    };
    for round in 1..=2 {
        let waiting = Waiting::start(&mut command(), "");
        assert!(
            waiting.address.contains("scope=read%3Aaccounts&"),
            "{}",
            waiting.address
        );
        let (head, _) = browse(&waiting.address);
        browse(&location(&head));
        let (status, said, noted) = waiting.finish("");
        assert_eq!(status, Some(0), "{noted}");
        assert!(said.contains("mastodon@127.0.0.1"), "{said}");
        assert!(
            said.contains(" ada "),
            "named by verify_credentials: {said}"
        );
        assert_eq!(scene.authority.calls_to("/api/v1/apps"), round.min(1));
    }
    assert_eq!(text(&scene.say("auth list").stdout).lines().count(), 1);
    // The code that a page shows, pasted.
    let waiting = Waiting::start(command().arg("--paste"), "");
    let (_, shown) = browse(&waiting.address);
    let (status, _, noted) = waiting.finish(&format!("{shown}\n"));
    assert_eq!(status, Some(0), "{noted}");
    // An application without a person.
    let app = command()
        .args(["--method", "app", "--name", "app"])
        .output();
    assert_done(&app.expect("the binary runs"));
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[]);
}

#[test]
fn an_application_that_registers_is_registered_with_its_redirect() {
    let scene = Scene::new(
        Authority::start(Style::Bearer),
        &format!("{CODE}{REGISTER}"),
    );
    let waiting = Waiting::start(&mut scene.login_command(""), "");
    let (head, _) = browse(&waiting.address);
    browse(&location(&head));
    assert_eq!(waiting.finish("").0, Some(0));
    assert_done(&scene.crawl("id:1 --until-idle"));
    scene.authority.assert_no_complaints();
}

#[test]
fn a_revoked_credential_stops_only_those_who_need_it() {
    let authority = Authority::start(Style::Bearer)
        .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
    let scene = Scene::new(authority, CODE);
    let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
    let (head, _) = browse(&waiting.address);
    assert_eq!(waiting.finish(&format!("{}\n", location(&head))).0, Some(0));
    scene.authority.revoke_all();
    let crawl = scene.crawl("id:1 id:2 id:3 --until-idle --json");
    assert_eq!(code(&crawl), Some(4), "{}", text(&crawl.stderr));
    let outcomes = scene.outcomes();
    let open_ones = outcomes.iter().filter(|row| row[0] == "open");
    let open_ones: Vec<_> = open_ones.map(|row| row[2].as_str()).collect();
    assert_eq!(open_ones, ["ok"; 3], "the others go on: {outcomes:?}");
    assert!(
        outcomes
            .iter()
            .any(|row| row[0] == "user" && row[2] == "auth expired"),
        "{outcomes:?}"
    );
    // One try to renew, and no more.
    assert_eq!(scene.authority.calls_to("/oauth/token"), 2);
    // Nothing is lost: after another log-in the same command goes on.
    let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
    let (head, _) = browse(&waiting.address);
    assert_eq!(waiting.finish(&format!("{}\n", location(&head))).0, Some(0));
    let again = scene.crawl("id:1 id:2 id:3 --until-idle");
    assert_done(&again);
    assert!(scene.outcomes().iter().all(|row| row[2] == "ok"));
    scene.assert_nothing_leaked(&[&crawl, &again]);
}

#[test]
fn a_kill_between_renewing_and_saving_loses_no_more_than_it_must() {
    for grace in [true, false] {
        let authority = Authority::start(Style::Bearer)
            .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
        authority.knows().grace = grace;
        let scene = Scene::new(authority, CODE);
        let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
        let (head, _) = browse(&waiting.address);
        assert_eq!(waiting.finish(&format!("{}\n", location(&head))).0, Some(0));
        scene.authority.expire_all();
        let mut command = scene.crawl_command("id:1 --until-idle");
        command.env("KITTIWAKE_CRASH_POINT", "renew-and-save:1");
        let mut killed = crate::support::Running::start(&mut command);
        assert!(killed.line().contains("renew-and-save"));
        killed.kill();
        scene.authority.expire_all();
        let after = scene.crawl("id:1 --until-idle");
        if grace {
            // The network lets the old token renew once more.
            assert_done(&after);
        } else {
            // What was given out is lost with the process: that is said, and nothing else is lost.
            let said = text(&after.stdout);
            assert_eq!(code(&after), Some(4), "{}", text(&after.stderr));
            assert!(
                said.contains("(invalid_grant: *** was used before)"),
                "{said}"
            );
            assert!(said.contains("log in with kittiwake login"), "{said}");
            assert!(text(&scene.say("auth list").stdout).contains("tiny@"));
        }
        scene.assert_nothing_leaked(&[&after]);
    }
    // A session begins anew with what the vault keeps.
    let scene = Scene::new(Authority::start(Style::Bearer), SESSION);
    assert_done(&scene.login("", &format!("ada\n{PASSWORD}\n")));
    scene.authority.expire_all();
    let mut command = scene.crawl_command("id:1 --until-idle");
    command.env("KITTIWAKE_CRASH_POINT", "renew-and-save:1");
    let mut killed = crate::support::Running::start(&mut command);
    assert!(killed.line().contains("renew-and-save"));
    killed.kill();
    scene.authority.expire_all();
    assert_done(&scene.crawl("id:1 --until-idle"));
    scene.assert_nothing_leaked(&[]);
}

#[test]
fn two_crawls_that_renew_at_once_use_each_renewal_token_once() {
    let authority = Authority::start(Style::Bearer)
        .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
    let scene = Scene::new(authority, CODE);
    let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
    let (head, _) = browse(&waiting.address);
    assert_eq!(waiting.finish(&format!("{}\n", location(&head))).0, Some(0));
    for round in 0..3 {
        scene.authority.expire_all();
        let address = &scene.authority.address;
        let children: Vec<Child> = (0..3)
            .map(|number| {
                let words = format!(
                    "crawl tiny.toml --host {address} --into {round}-{number}.db --quiet \
                     --limits off id:1 --until-idle"
                );
                let mut command = scene.command(&words);
                command.stdout(Stdio::null()).stderr(Stdio::piped());
                command.spawn().expect("the binary starts")
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().expect("it ends");
            assert_done(&output);
        }
    }
    // Each round renewed, and nobody used a token twice: that would have ended everything.
    assert!(scene.authority.calls_to("/oauth/token") >= 4);
    scene.authority.assert_no_complaints();
}

#[test]
fn a_credential_goes_to_no_host_but_its_own() {
    let scene = Scene::new(Authority::start(Style::Bearer), "");
    assert_done(&scene.login("--token --name mine", &format!("{API_KEY}\n")));
    // Another host of the same network, and the same definition: no credential is found for it.
    let other = Authority::start(Style::Bearer);
    let address = &other.address;
    let crawl = scene.say(&format!(
        "crawl tiny.toml --host {address} --into o.db --quiet --limits off id:1 --until-idle"
    ));
    assert_eq!(other.calls_to("/users/1"), 0);
    assert_eq!(other.calls_to("/open/1"), 1);
    other.assert_no_complaints();
    scene.assert_nothing_leaked(&[&crawl]);
    // A definition of the same name that renews elsewhere gets nothing to renew with.
    let session = Scene::new(Authority::start(Style::Bearer), SESSION);
    assert_done(&session.login("", &format!("ada\n{PASSWORD}\n")));
    session.authority.expire_all();
    let thief = Authority::start(Style::Bearer);
    let path = session.folder.path("tiny.toml");
    let definition = std::fs::read_to_string(&path).expect("a definition");
    let place = format!("refresh = \"{}/session/refresh\"", thief.address);
    let changed = definition.replace("refresh = \"/session/refresh\"", &place);
    assert_ne!(changed, definition);
    std::fs::write(&path, changed).expect("a definition");
    assert_eq!(code(&session.crawl("id:1 --until-idle")), Some(4));
    assert!(thief.knows().calls.is_empty());
}

#[test]
fn failed_log_ins_give_nothing_away() {
    let authority = Authority::start(Style::Bearer).with_client(&[], "users.read offline.access");
    let scene = Scene::new(authority, CODE);
    // Logging of every layer is asked for; a program that logged would now.
    let verbose = |command: &mut Command| {
        command
            .env("RUST_LOG", "trace")
            .env("RUST_BACKTRACE", "full");
    };
    let mut wrong = scene.login_command("--paste --port 1");
    verbose(&mut wrong);
    scene
        .authority
        .knows()
        .redirects
        .push("http://127.0.0.1:1/".to_owned());
    let waiting = Waiting::start(&mut wrong, &format!("{CLIENT_ID}\nplanted-bad-secret\n"));
    let (head, _) = browse(&waiting.address);
    let (status, said, noted) = waiting.finish(&format!("{}\n", location(&head)));
    assert_eq!(status, Some(4), "{noted}");
    // The server repeated the secret in its words; they are shown without it.
    assert!(noted.contains("invalid_client: no ***"), "{noted}");
    assert!(!format!("{said}{noted}").contains(PLANTED), "{noted}");
    // A host that is down.
    let mut down = scene.command("login tiny.toml --host http://127.0.0.1:1 --paste");
    verbose(&mut down);
    let down = with_input(
        &mut down,
        &format!("{CLIENT_ID}\n{CLIENT_SECRET}\nplanted\n"),
    );
    assert_ne!(code(&down), Some(0));
    // Characters that no secret has.
    let odd = scene.login("--token", "planted \u{7f} secret\n");
    assert_eq!(code(&odd), Some(2));
    let none = scene.login("--token", "");
    assert_eq!(code(&none), Some(2));
    assert!(text(&none.stderr).contains("no access token was given"));
    scene.assert_nothing_leaked(&[&odd, &none]);
    let said = text(&down.stderr);
    assert!(!said.contains(CLIENT_SECRET), "{said}");
}

/// Logs in by pasting, and leaves a credential that can be renewed.
fn logged_in() -> Scene {
    let authority = Authority::start(Style::Bearer)
        .with_client(&["http://127.0.0.1:0/"], "users.read offline.access");
    let scene = Scene::new(authority, CODE);
    let waiting = Waiting::start(&mut scene.login_command("--paste"), CLIENT);
    let (head, _) = browse(&waiting.address);
    let (status, _, noted) = waiting.finish(&format!("{}\n", location(&head)));
    assert_eq!(status, Some(0), "{noted}");
    scene
}

#[test]
fn a_network_that_refuses_what_it_gave_out_is_not_asked_for_more() {
    let scene = logged_in();
    scene.authority.knows().locked = true;
    let crawl = scene.crawl("id:1 id:2 id:3 --until-idle");
    assert_eq!(code(&crawl), Some(4), "{}", text(&crawl.stderr));
    // The code was redeemed, and the token renewed once.
    assert_eq!(scene.authority.calls_to("/oauth/token"), 2);
    scene.assert_nothing_leaked(&[&crawl]);
}

#[test]
fn trouble_while_renewing_passes() {
    let scene = logged_in();
    scene.authority.expire_all();
    scene.authority.knows().token_answers = vec![(503, "planted-in-trouble")];
    let crawl = scene.crawl("id:1 --until-idle");
    assert_done(&crawl);
    assert_eq!(scene.authority.calls_to("/oauth/token"), 3);
    scene.authority.assert_no_complaints();
    scene.assert_nothing_leaked(&[&crawl]);
}

#[test]
fn answers_that_are_no_tokens_are_told_and_not_repeated() {
    let auth = "[auth.methods.app]\nkind = \"client_credentials\"\ntoken = \"/oauth/token\"\n";
    let authority = Authority::start(Style::Bearer).with_client(&[], "users.read");
    let scene = Scene::new(authority, auth);
    for (status, body) in [
        (200, "<html>planted</html>"),
        (200, "{\"access_token\":\"planted\\r\\nx: y\"}"),
        (200, "{\"access_token\":[\"planted\"]}"),
        (200, "[\"planted\"]"),
        (200, ""),
        (302, "planted"),
        (400, "{\"error\":{\"planted\":1}}"),
    ] {
        scene.authority.knows().token_answers = vec![(status, body)];
        let login = scene.login("", CLIENT);
        assert_eq!(code(&login), Some(4), "{body}: {}", text(&login.stderr));
        let said = text(&login.stderr);
        assert!(said.contains("no credential was stored"), "{said}");
        scene.assert_nothing_leaked(&[&login]);
    }
    assert_eq!(text(&scene.say("auth list").stdout), "");
}

#[test]
fn a_credential_is_chosen_by_name_and_removed_by_name() {
    let scene = Scene::new(Authority::start(Style::Bearer), "");
    for name in ["one", "two"] {
        let login = scene.login(&format!("--token --name {name}"), &format!("{API_KEY}\n"));
        assert_done(&login);
    }
    let unclear = scene.crawl("id:1 --until-idle");
    assert_eq!(code(&unclear), Some(2));
    assert!(text(&unclear.stderr).contains("say which: one, two"));
    assert_done(&scene.crawl("id:1 --until-idle --as two"));
    assert_eq!(code(&scene.crawl("id:1 --until-idle --as three")), Some(4));
    assert_eq!(code(&scene.say("auth remove tiny")), Some(2));
    assert_done(&scene.say("auth remove tiny --name one"));
    assert_done(&scene.crawl("id:1 --until-idle"));
    assert_done(&scene.say("auth remove tiny"));
    assert_eq!(code(&scene.say("auth remove tiny")), Some(2));
    // A crawl may also go without.
    let before = scene.authority.calls_to("/users/");
    assert_done(&scene.crawl("id:2 --until-idle --anonymous"));
    assert_eq!(scene.authority.calls_to("/users/"), before);
}

#[test]
fn a_panic_in_the_middle_of_a_renewal_gives_nothing_away() {
    let scene = logged_in();
    scene.authority.expire_all();
    let mut command = scene.crawl_command("id:1 --until-idle --raw");
    command
        .env("KITTIWAKE_CRASH_POINT", "renew-and-save:1:panic")
        .env("RUST_BACKTRACE", "full")
        .env("RUST_LOG", "trace");
    let output = command.output().expect("the binary runs");
    assert_eq!(code(&output), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("panicked"));
    scene.assert_nothing_leaked(&[&output]);
    // The lock is gone with the process, and the vault is as it was.
    assert!(text(&scene.say("auth list").stdout).contains("tiny@"));
}
