//! A throw-away PostgreSQL for tests.
//!
//! Tests run in many processes at once, and a server takes seconds to start: so all of them share
//! one. Whoever comes first starts it; it stops, and its data go, a few seconds after the last one
//! has ended, however that ended. Every test has a schema of its own. A test that does to its server
//! what others would not survive has one for itself ([`own`]).

#![allow(dead_code, reason = "tests of several crates use it, each its part")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::SimpleQueryMessage;

/// The user who may do everything.
pub(crate) const OWNER: &str = "kittiwake";

/// Stops the server when nobody has locked `users` for a while.
const WATCH: &str = r#"
cd "$1" || exit 1
while :; do
  flock users true
  sleep 5
  exec 9>start
  flock 9
  if flock --nonblock users true; then
    $2 "$3/pg_ctl" -D "$1/data" -m immediate stop
    rm -rf "$1/$4"
    exit
  fi
  exec 9>&-
done
"#;

/// What the shared server does without: nothing on it has to outlive a crash.
const CARELESS: &str = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off";
/// A server that keeps what it has acknowledged when it is stopped at once. The machine itself does
/// not crash, so it need not wait for the disk.
const CAREFUL: &str = "-c fsync=off -c synchronous_commit=on";

/// The host that the certificate of [`encrypted`] is for.
pub(crate) const ENCRYPTED_HOST: &str = "db.example.org";

/// Who may come to [`encrypted`]: only `plainly` without encryption, and nobody else.
const ENCRYPTED_RULES: &str = "local all all trust
hostnossl all plainly all trust
hostssl all plainly all reject
hostssl all with_password all scram-sha-256
hostssl all all all trust
";

/// Makes two roots, and certificates of the server: one that the first root has signed, with another
/// hash than most, one that signs itself, and one as old recipes make it.
const CERTIFICATES: &str = r#"
set -e
cd "$1"
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
for root in root other; do
  openssl req -x509 $key -keyout $root.key -out $root.pem -days 30 -subj "/CN=$root"
done
openssl req $key -keyout server.key -out server.csr -subj "/CN=$2"
echo "subjectAltName=DNS:$2" > names
openssl x509 -req -in server.csr -CA root.pem -CAkey root.key -CAcreateserial -sha384 \
  -days 30 -extfile names -out server.pem
openssl req -x509 -key server.key -out itself.pem -days 30 -subj "/CN=$2" \
  -addext "subjectAltName=DNS:$2"
# Of version 1: newer programs have to be told, older ones do not know the word.
openssl req -x509 -x509v1 -key server.key -out old.pem -days 30 -subj "/CN=$2" ||
  openssl x509 -req -in server.csr -CA root.pem -CAkey root.key -days 30 -out old.pem
chmod 600 server.key
"#;

pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    /// Locked for as long as the server is wanted.
    _users: File,
}

/// The server that all tests share.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| start(&server_folder(""), &|_| CARELESS.to_owned(), "data"))
}

/// A server that all tests share and that wants connections from afar to be encrypted. Its
/// certificates are in its folder of data.
pub(crate) fn encrypted() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| start(&server_folder("-encrypted"), &encrypt("server.pem"), "data"))
}

/// The same for one test, with another of the certificates.
pub(crate) fn encrypted_with(certificate: &'static str) -> Server {
    let folder = server_folder(&format!("-{}", unused()));
    start(&folder, &encrypt(certificate), "")
}

/// Makes what a server needs to encrypt with one of its certificates; gives its settings.
fn encrypt(certificate: &'static str) -> impl Fn(&Path) -> String {
    move |data| {
        let script = data.join("certificates.sh");
        std::fs::write(&script, CERTIFICATES).unwrap();
        let mut make = as_server(&as_user(), Path::new("sh"));
        make.arg(&script).arg(data).arg(ENCRYPTED_HOST);
        run(make.stderr(Stdio::null()));
        let rules = data.join("encrypted_hba.conf");
        std::fs::write(&rules, ENCRYPTED_RULES).unwrap();
        format!(
            "{CARELESS} -c listen_addresses=127.0.0.1 -c port={} -c ssl=on -c ssl_cert_file={certificate} \
             -c ssl_key_file=server.key -c hba_file={}",
            free_port(),
            rules.display()
        )
    }
}

/// A port that nobody listens on just now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A server that only this test has. It goes with it.
pub(crate) fn own() -> Server {
    start(
        &server_folder(&format!("-{}", unused())),
        &|_| CAREFUL.to_owned(),
        "",
    )
}

/// The same, and it waits for its disk.
pub(crate) fn durable() -> Server {
    start(
        &server_folder(&format!("-{}", unused())),
        &|_| String::new(),
        "",
    )
}

/// A word that nobody else uses.
fn unused() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{}_{number}", std::process::id())
}

fn server_folder(end: &str) -> PathBuf {
    let owner = if as_user().is_empty() {
        "self"
    } else {
        "postgres"
    };
    std::env::temp_dir().join(format!("kittiwake-test-server-{owner}{end}"))
}

impl Server {
    /// A schema that nobody else has. It is made when it is first opened.
    pub(crate) fn schema(&self) -> Schema {
        let name = format!("t_{}", unused());
        Schema {
            url: format!(
                "{}&application_name={name}",
                self.url(OWNER, "postgres", &name)
            ),
            name,
        }
    }

    pub(crate) fn url(&self, user: &str, database: &str, schema: &str) -> String {
        let folder = self.folder.to_string_lossy().replace('/', "%2F");
        let port = self.port;
        format!("postgres://{user}@{folder}:{port}/{database}?options=-csearch_path%3D{schema}")
    }

    /// The URL for programs that take sockets as a parameter.
    pub(crate) fn url_by_parameter(&self) -> String {
        let folder = self.folder.to_string_lossy().replace('/', "%2F");
        format!(
            "postgres://{OWNER}@localhost:{}/postgres?host={folder}",
            self.port
        )
    }

    /// The URL of a schema as others on the network see it: `host` is what they call the server.
    pub(crate) fn url_from_afar(&self, user: &str, host: &str, schema: &Schema) -> String {
        format!(
            "postgres://{user}@{host}:{}/postgres?hostaddr=127.0.0.1&options=-csearch_path%3D{name}\
             &application_name={name}",
            self.port,
            name = schema.name
        )
    }

    /// One of the files that were made with the server, as a URL names it.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.folder.join("data").join(name);
        path.to_string_lossy().replace('/', "%2F")
    }

    /// Stops the server and starts it again: `fast` ends its sessions, `immediate` is a crash.
    pub(crate) fn restart(&self, mode: &str) {
        run(self.pg_ctl().args(["-w", "-m", mode]).arg("restart"));
    }

    /// From now on the server encrypts no connection.
    pub(crate) fn turn_encryption_off(&self) {
        // What is said on the command line cannot be changed by a setting, so it is said again.
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={} -c ssl=off \
             -c hba_file={}",
            self.port,
            self.folder.display(),
            self.folder.join("data/encrypted_hba.conf").display()
        );
        run(self
            .pg_ctl()
            .args(["-w", "-m", "fast", "-o", &options])
            .arg("restart"));
    }

    /// Stops the server for good.
    pub(crate) fn stop(&self) {
        run(self.pg_ctl().args(["-w", "-m", "fast"]).arg("stop"));
    }

    fn pg_ctl(&self) -> Command {
        let pg_ctl = binaries().join("pg_ctl");
        command(&as_user(), &pg_ctl, &self.folder.join("data"))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }
}

/// A schema of one test, which goes with it.
pub(crate) struct Schema {
    pub name: String,
    pub url: String,
}

impl Schema {
    /// Runs statements beside the store.
    pub(crate) fn run(&self, sql: &str) {
        self.ask(sql);
    }

    /// The names of the columns of a query, and its rows as texts.
    pub(crate) fn select(&self, sql: &str) -> (Vec<String>, Vec<Vec<Option<String>>>) {
        let (mut names, mut rows) = (Vec::new(), Vec::new());
        for message in self.ask(sql) {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    names = columns
                        .iter()
                        .map(|column| column.name().to_owned())
                        .collect();
                }
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|place| row.get(place).map(str::to_owned));
                    rows.push(cells.collect());
                }
                _ => {}
            }
        }
        (names, rows)
    }

    fn ask(&self, sql: &str) -> Vec<SimpleQueryMessage> {
        let url = self
            .url
            .replace("&application_name=", "&application_name=beside_");
        let sql = sql.to_owned();
        // The caller's thread may be busy with futures of its own.
        let work = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls);
                let (client, connection) = connected.await.unwrap();
                tokio::spawn(connection);
                let answer = client.simple_query(&sql).await;
                answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
            })
        });
        work.join().unwrap()
    }

    /// Ends the sessions of whoever has the schema open.
    pub(crate) fn end_sessions(&self) {
        self.run(&format!(
            "DO $$ BEGIN PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
             WHERE application_name = '{}'; END $$",
            self.name
        ));
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name));
        }
    }
}

/// Starts the server in a folder, if it does not run; `to_remove` is what goes with it.
fn start(folder: &Path, settings: &dyn Fn(&Path) -> String, to_remove: &str) -> Server {
    let binaries = binaries();
    let as_user = as_user();
    std::fs::create_dir_all(folder).unwrap();
    if !as_user.is_empty() {
        run(Command::new("chown").arg("postgres").arg(folder));
    }
    let turn = File::create(folder.join("start")).unwrap();
    turn.lock().unwrap();
    let users = File::create(folder.join("users")).unwrap();
    users.lock_shared().unwrap();
    let data = folder.join("data");
    let pg_ctl = || command(&as_user, &binaries.join("pg_ctl"), &data);
    let is_running = pg_ctl()
        .arg("status")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    if !is_running.success() {
        make(&as_user, &binaries, &data);
        // Somebody else may have taken the port by now; then there is another one.
        let has_started = (0..5).any(|_| {
            let options = format!(
                "-c listen_addresses= -c unix_socket_directories={} {} \
                 -c max_connections=300 -c max_locks_per_transaction=256",
                folder.display(),
                settings(&data)
            );
            let log = data.join("log");
            let mut start = pg_ctl();
            start.args(["-w", "-l"]).arg(log);
            start.args(["-o", &options, "start"]).stdout(Stdio::null());
            start.status().unwrap().success()
        });
        assert!(has_started, "no server in {}", folder.display());
        // In a session of its own: it outlives this process.
        run(Command::new("setsid")
            .args(["--fork", "sh", "-c", WATCH, "watch"])
            .arg(folder)
            .arg(as_user.join(" "))
            .arg(&binaries)
            .arg(to_remove)
            .stdin(Stdio::null())
            .stderr(Stdio::null()));
    }
    Server {
        folder: folder.to_owned(),
        port: port_of(&data),
        _users: users,
    }
}

/// The port that a server writes down when it starts.
fn port_of(data: &Path) -> u16 {
    let written = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
    written.lines().nth(3).unwrap().trim().parse().unwrap()
}

/// A cluster whose texts have an order of people, not of bytes: the store must not depend on it.
fn make(as_user: &[&str], binaries: &Path, data: &Path) {
    let _ = std::fs::remove_dir_all(data);
    let initdb = || {
        let mut initdb = command(as_user, &binaries.join("initdb"), data);
        initdb.args(["--no-sync", "-A", "trust", "-U", OWNER, "-E", "UTF8"]);
        initdb.stdout(Stdio::null());
        initdb
    };
    let with_order = initdb()
        .args([
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en-US",
        ])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    if !with_order.success() {
        let _ = std::fs::remove_dir_all(data);
        run(initdb().arg("--locale=C.UTF-8"));
    }
    let rules = data.join("pg_hba.conf");
    let others = std::fs::read_to_string(&rules).unwrap();
    let first = "local all with_password scram-sha-256\n";
    std::fs::write(&rules, format!("{first}{others}")).unwrap();
}

/// Where the server's programs are: Debian does not put them on the path.
fn binaries() -> PathBuf {
    let debian = Path::new("/usr/lib/postgresql");
    let mut versions: Vec<PathBuf> = std::fs::read_dir(debian)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("initdb").exists())
        .collect();
    versions.sort();
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).find(|folder| folder.join("initdb").exists());
    versions
        .pop()
        .or(on_path)
        .expect("PostgreSQL is not installed; install the package postgresql, or run ./test")
}

/// PostgreSQL refuses to run as root.
fn as_user() -> Vec<&'static str> {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout.trim_ascii() == b"0" {
        vec!["runuser", "-u", "postgres", "--"]
    } else {
        Vec::new()
    }
}

fn command(as_user: &[&str], program: &Path, data: &Path) -> Command {
    let mut command = as_server(as_user, program);
    command.arg("-D").arg(data);
    command
}

/// A program that runs as the server's user.
fn as_server(as_user: &[&str], program: &Path) -> Command {
    let mut command = match as_user {
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        [] => Command::new(program),
    };
    // Wherever the test runs, the server's user may not look into that folder.
    command.current_dir("/");
    command
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}
