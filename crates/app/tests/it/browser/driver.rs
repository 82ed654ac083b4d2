//! A real browser that does what a test tells it, over WebDriver; no more of the protocol than is needed.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// What a page may take to show something, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How a page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) is_dark: bool,
}

/// Chromium, with a profile of its own, until the test ends.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Child,
    /// The address of the session.
    session: String,
    profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(async {
            let end = self.client.delete(&self.session);
            end.timeout(Duration::from_secs(20)).send().await
        });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl Browser {
    /// Nothing where no browser is installed.
    pub(crate) fn start() -> Option<Self> {
        if !is_installed("chromium") || !is_installed("chromedriver") {
            println!("skipped: chromium and chromedriver are not installed");
            return None;
        }
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", profile.path())
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let port = port_of(&mut driver);
        kittiwake_fetch::install_tls_provider();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_mins(2))
            .build()
            .expect("a client");
        let mut browser = Self {
            runtime,
            client,
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            profile,
        };
        let made = browser.command(&Method::POST, "", &browser.wishes());
        let id = made["sessionId"].as_str().expect("a session");
        browser.session = format!("{}/{id}", browser.session);
        Some(browser)
    }

    fn wishes(&self) -> Value {
        let profile = self.profile.path().join("profile");
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--lang=en-GB",
        ];
        let mut flags: Vec<String> = flags.map(String::from).to_vec();
        flags.push(format!("--user-data-dir={}", profile.display()));
        json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "script": 60_000, "pageLoad": 60_000 },
        } } })
    }

    /// One command of the protocol.
    fn try_command(&self, method: &Method, path: &str, body: &Value) -> Result<Value, String> {
        let url = format!("{}{path}", self.session);
        self.runtime.block_on(async {
            let mut request = self.client.request(method.clone(), &url);
            if *method == Method::POST {
                let kind = "application/json";
                request = request.header("content-type", kind).body(body.to_string());
            }
            let answer = request.send().await.map_err(|error| error.to_string())?;
            let is_fine = answer.status().is_success();
            let bytes = answer.bytes().await.map_err(|error| error.to_string())?;
            let mut told: Value =
                serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
            let value = told["value"].take();
            if is_fine {
                Ok(value)
            } else {
                Err(value.to_string())
            }
        })
    }

    fn command(&self, method: &Method, path: &str, body: &Value) -> Value {
        let done = self.try_command(method, path, body);
        done.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A command of the browser itself.
    fn tell(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.command(&Method::POST, "/goog/cdp/execute", &body)
    }

    pub(crate) fn go(&self, url: &str) {
        self.command(&Method::POST, "/url", &json!({ "url": url }));
    }

    pub(crate) fn address(&self) -> String {
        let url = self.command(&Method::GET, "/url", &Value::Null);
        url.as_str().expect("an address").to_owned()
    }

    /// What a script gives back; `return …`.
    pub(crate) fn script(&self, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.command(&Method::POST, "/execute/sync", &body)
    }

    /// What a script gives that ends later, by calling its last argument.
    pub(crate) fn script_later(&self, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.command(&Method::POST, "/execute/async", &body)
    }

    /// The element, if it is there.
    fn find(&self, css: &str) -> Option<String> {
        let body = json!({ "using": "css selector", "value": css });
        let found = self.try_command(&Method::POST, "/element", &body).ok()?;
        let (_, id) = found.as_object()?.iter().next()?;
        id.as_str().map(str::to_owned)
    }

    pub(crate) fn has(&self, css: &str) -> bool {
        self.find(css).is_some()
    }

    fn element(&self, css: &str) -> String {
        self.until(css, |browser| browser.find(css))
    }

    /// Clicks as a person does: it has to be visible.
    pub(crate) fn click(&self, css: &str) {
        self.until(&format!("a click on {css}"), |browser| {
            let id = browser.find(css)?;
            // What moves is found anew.
            let path = format!("/element/{id}/click");
            browser.try_command(&Method::POST, &path, &json!({})).ok()
        });
    }

    pub(crate) fn write(&self, css: &str, text: &str) {
        let id = self.element(css);
        self.command(&Method::POST, &format!("/element/{id}/clear"), &json!({}));
        let path = format!("/element/{id}/value");
        self.command(&Method::POST, &path, &json!({ "text": text }));
    }

    /// The text of an element as it is shown.
    pub(crate) fn text(&self, css: &str) -> String {
        self.until(css, |browser| {
            let id = browser.find(css)?;
            let path = format!("/element/{id}/text");
            let text = browser
                .try_command(&Method::GET, &path, &Value::Null)
                .ok()?;
            text.as_str().map(str::to_owned)
        })
    }

    /// Presses the question away that a page asks before it does something.
    pub(crate) fn say_yes(&self) {
        self.until("a question", |browser| {
            browser
                .try_command(&Method::POST, "/alert/accept", &json!({}))
                .ok()
        });
    }

    /// Looks again and again until there is something.
    pub(crate) fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(found) = look(self) {
                return found;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let page =
            self.script("return document.body ? document.body.innerText.slice(0, 2000) : ''");
        panic!("{what} did not come about on {}:\n{page}", self.address());
    }

    pub(crate) fn wait_for_text(&self, css: &str, wanted: &str) {
        self.until(&format!("{wanted:?} in {css}"), |browser| {
            browser.text(css).contains(wanted).then_some(())
        });
    }

    pub(crate) fn look(&self, view: View) {
        let metrics = json!({
            "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": view.width < 600,
        });
        self.tell("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if view.is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.tell("Emulation.setEmulatedMedia", &media);
    }

    /// A picture of what is seen of the page.
    pub(crate) fn photograph(&self, view: View) -> Vec<u8> {
        let clip =
            json!({ "x": 0, "y": 0, "width": view.width, "height": view.height, "scale": 1 });
        let wishes = json!({ "format": "png", "clip": clip });
        let taken = self.tell("Page.captureScreenshot", &wishes);
        let encoded = taken["data"].as_str().expect("a picture");
        BASE64_STANDARD.decode(encoded).expect("a picture")
    }

    /// What the browser has complained of since it was last asked: refusals by policy, errors of scripts.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let entries = self.command(&Method::POST, "/se/log", &json!({ "type": "browser" }));
        let entries = entries.as_array().expect("a list").iter();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }
}

/// Where chromedriver says that it listens.
fn port_of(driver: &mut Child) -> u16 {
    let stdout = driver.stdout.take().expect("standard output is piped");
    for line in BufReader::new(stdout)
        .lines()
        .take(20)
        .map_while(Result::ok)
    {
        let Some((_, rest)) = line.split_once("successfully on port ") else {
            continue;
        };
        return rest.trim_end_matches('.').trim().parse().expect("a port");
    }
    panic!("chromedriver does not say where it listens");
}
