//! `[auth]`: how a network is asked by somebody it knows.

use super::source::{Placed, Section};
use super::web::read_css;
use super::{keys, named_sections};
use crate::auth::{
    Auth, ClientAuth, CodeFlow, DeviceFlow, FormFlow, LoginKind, LoginMethod, Place, Pooling,
    Registration, Sending, SessionFlow, TestCall, TokenEndpoint,
};
use kittiwake_model::Name;
use url::Url;

/// Keys that have a meaning for some kinds only: (key, kinds).
const KEYS_OF_KINDS: &[(&str, &[&str])] = &[
    ("authorize", &["code"]),
    ("device", &["device"]),
    ("token", &["code", "device", "client_credentials"]),
    ("client_auth", &["code", "device", "client_credentials"]),
    ("register", &["code", "client_credentials"]),
    ("paste_redirect", &["code"]),
    ("create", &["session"]),
    ("refresh", &["session"]),
    ("parameters", &["session"]),
    ("answer", &["session"]),
    ("form", &["form"]),
    ("proof", &["token", "code", "device", "client_credentials"]),
];
const KINDS: &[(&str, &str)] = &[
    ("token", "token"),
    ("client_credentials", "client_credentials"),
    ("code", "code"),
    ("device", "device"),
    ("oauth1", "oauth1"),
    ("session", "session"),
    ("form", "form"),
];
const POOLINGS: &[(&str, Pooling)] = &[
    ("forbidden", Pooling::Forbidden),
    ("per-consenting-user", Pooling::PerConsentingUser),
    ("free", Pooling::Free),
];
/// Headers that are the connection's own affair.
const RESERVED_HEADERS: &[&str] = &["host", "content-length", "transfer-encoding", "connection"];

/// The section, or the plain bearer token of a network that has none.
pub(super) fn read_auth(top: &Section<'_, '_>) -> Auth {
    let Some(section) = top.table("auth") else {
        return Auth {
            methods: vec![plain_token()],
            pooling: Pooling::default(),
        };
    };
    section.expect_keys(keys::AUTH);
    let mut methods: Vec<LoginMethod> = named_sections(&section, "methods")
        .into_iter()
        .filter_map(|(name, _, section)| read_method(name, &section))
        .collect();
    if methods.is_empty() {
        methods.push(plain_token());
    }
    let pooling = section.word("pooling", POOLINGS).unwrap_or_default();
    Auth { methods, pooling }
}

fn plain_token() -> LoginMethod {
    LoginMethod {
        name: "token".into(),
        description: String::new(),
        kind: LoginKind::Token,
        sending: Sending::Bearer,
        scopes: Vec::new(),
        variables: Vec::new(),
        proof_variables: Vec::new(),
        hosts: Vec::new(),
        page: None,
        test: None,
    }
}

fn read_method(name: Name, section: &Section<'_, '_>) -> Option<LoginMethod> {
    section.expect_keys(keys::AUTH_METHOD);
    if !section.has("kind") {
        section.missing("kind", "kind = \"token\"");
    }
    let word = section.word("kind", KINDS)?;
    for (key, kinds) in KEYS_OF_KINDS {
        if section.has(key) && !kinds.contains(&word) {
            let message = format!("`{key}` has no meaning for `kind = \"{word}\"`");
            let help = format!("leave it out, or write `kind = \"{}\"`", kinds[0]);
            section.report(&section.span_of(key), message, help);
        }
    }
    let kind = match word {
        "code" => read_code(section).map(LoginKind::Code),
        "device" => read_device(section).map(LoginKind::Device),
        "client_credentials" => read_client(section),
        "session" => read_session(section).map(LoginKind::Session),
        "form" => read_form(section).map(LoginKind::Form),
        "oauth1" => Some(LoginKind::OAuth1),
        _ => Some(LoginKind::Token),
    };
    let texts = |key: &str| -> Vec<String> {
        let texts = section.texts(key).unwrap_or_default();
        texts.into_iter().map(|text| text.value).collect()
    };
    let scopes = texts("scopes");
    check_words(section, "scopes");
    let (proof, proof_variables) = read_proof(section);
    let sending = read_sending(section, word);
    let sending = match proof {
        Some(parameter) => Sending::Proved {
            token: Box::new(sending),
            parameter,
        },
        None => sending,
    };
    Some(LoginMethod {
        name,
        description: section
            .text("description")
            .map_or_else(String::new, |text| text.value),
        sending,
        kind: kind?,
        scopes,
        variables: read_variables(section),
        proof_variables,
        hosts: read_hosts(section),
        page: section.text("page").map(|text| text.value),
        test: read_test(section),
    })
}

/// Permissions are joined by spaces, so that none may hold one.
fn check_words(section: &Section<'_, '_>, key: &str) {
    for text in section.texts(key).unwrap_or_default() {
        if text.value.is_empty() || text.value.contains(char::is_whitespace) {
            let message = format!("`{}` is not one permission", text.value.escape_debug());
            let help = "write each as a text of its own";
            section.report(&text.span, message, help);
        }
    }
}

fn read_variables(section: &Section<'_, '_>) -> Vec<String> {
    let is_plain = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    let mut variables = Vec::new();
    for text in section.texts("variables").unwrap_or_default() {
        if !text.value.is_empty() && text.value.chars().all(|it| is_plain(it) || it == '_') {
            variables.push(text.value);
            continue;
        }
        let message = format!("`{}` is no variable", text.value.escape_debug());
        let help = "write capital letters, digits and `_`, as in `BEARER_TOKEN`";
        section.report(&text.span, message, help);
    }
    variables
}

/// `proof`: the parameter in which a proof is sent, and the variables that may hold the secret for it.
fn read_proof(section: &Section<'_, '_>) -> (Option<String>, Vec<String>) {
    let Some(proof) = section.table("proof") else {
        return (None, Vec::new());
    };
    proof.expect_keys(keys::AUTH_PROOF);
    let parameter = proof.need_text("parameter", "parameter = \"appsecret_proof\"");
    if let Some(empty) = parameter.as_ref().filter(|text| text.value.is_empty()) {
        let message = "the parameter has no name";
        proof.report(
            &empty.span,
            message,
            "write for example `parameter = \"appsecret_proof\"`",
        );
    }
    (parameter.map(|text| text.value), read_variables(&proof))
}

fn read_hosts(section: &Section<'_, '_>) -> Vec<Url> {
    let texts = section.texts("hosts").unwrap_or_default();
    texts
        .into_iter()
        .filter_map(|text| read_address(section, &text))
        .collect()
}

fn read_sending(section: &Section<'_, '_>, kind: &str) -> Sending {
    if kind == "oauth1" {
        if section.has("send") {
            let message = "a signature always stands in `Authorization`";
            section.report(&section.span_of("send"), message, "leave `send` out");
        }
        return Sending::OAuth1;
    }
    if kind == "form" {
        if section.has("send") {
            let message = "a session of a web page is its cookies";
            section.report(&section.span_of("send"), message, "leave `send` out");
        }
        return Sending::Header("cookie".to_owned());
    }
    let Some(send) = section.table("send") else {
        return Sending::Bearer;
    };
    send.expect_keys(keys::AUTH_SEND);
    match (send.text("header"), send.text("query")) {
        (Some(header), None) => {
            let name = header.value.to_ascii_lowercase();
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'-')
                && !RESERVED_HEADERS.contains(&name.as_str());
            if !is_name {
                let message = format!("`{}` is no header to send", header.value.escape_debug());
                send.report(&header.span, message, "write for example `x-api-key`");
            }
            Sending::Header(name)
        }
        (None, Some(query)) => {
            if query.value.is_empty() {
                let message = "the parameter has no name";
                send.report(&query.span, message, "write for example `query = \"key\"`");
            }
            Sending::Query(query.value)
        }
        _ => {
            let message = "`send` names one place";
            let help = "write `{ header = \"x-api-key\" }` or `{ query = \"key\" }`";
            send.report(&send.span, message, help);
            Sending::Bearer
        }
    }
}

fn read_code(section: &Section<'_, '_>) -> Option<CodeFlow> {
    let authorize = need_place(section, "authorize", "/oauth/authorize");
    let token = read_endpoint(section);
    let register = read_registration(section);
    Some(CodeFlow {
        authorize: authorize?,
        token: token?,
        register,
        paste_redirect: section.text("paste_redirect").map(|text| text.value),
    })
}

fn read_device(section: &Section<'_, '_>) -> Option<DeviceFlow> {
    let device = need_place(section, "device", "/oauth/device");
    let token = read_endpoint(section);
    Some(DeviceFlow {
        device: device?,
        token: token?,
    })
}

fn read_client(section: &Section<'_, '_>) -> Option<LoginKind> {
    let register = read_registration(section);
    Some(LoginKind::ClientCredentials {
        endpoint: read_endpoint(section)?,
        register,
    })
}

fn read_endpoint(section: &Section<'_, '_>) -> Option<TokenEndpoint> {
    let words = [
        ("body", ClientAuth::Body),
        ("basic", ClientAuth::Basic),
        ("none", ClientAuth::None),
    ];
    let client = section.word("client_auth", &words);
    Some(TokenEndpoint {
        place: need_place(section, "token", "/oauth/token")?,
        client: client.unwrap_or(ClientAuth::Body),
    })
}

fn read_registration(section: &Section<'_, '_>) -> Option<Registration> {
    let register = section.table("register")?;
    register.expect_keys(keys::AUTH_REGISTER);
    Some(Registration {
        place: need_place(&register, "path", "/api/v1/apps")?,
        parameters: read_parameters(&register, &["{redirect}", "{scopes}"]),
    })
}

fn read_session(section: &Section<'_, '_>) -> Option<SessionFlow> {
    let create = need_place(section, "create", "/session/create");
    let refresh = need_place(section, "refresh", "/session/refresh");
    let parameters = read_parameters(section, &["{identifier}", "{password}"]);
    for wanted in ["{identifier}", "{password}"] {
        if !parameters.iter().any(|(_, value)| value == wanted) {
            let message = format!("no parameter holds `{wanted}`");
            let help =
                "write `parameters = { identifier = \"{identifier}\", password = \"{password}\" }`";
            section.report(&section.span_of("parameters"), message, help);
        }
    }
    let Some(answer) = section.table("answer") else {
        if !section.has("answer") {
            section.missing("answer", "answer = { access = \"…\", refresh = \"…\" }");
        }
        return None;
    };
    answer.expect_keys(keys::AUTH_ANSWER);
    let access = answer.need_text("access", "access = \"accessJwt\"");
    let renewal = answer.need_text("refresh", "refresh = \"refreshJwt\"");
    Some(SessionFlow {
        create: create?,
        refresh: refresh?,
        parameters,
        access_key: access?.value,
        refresh_key: renewal?.value,
        account_key: answer.text("account").map(|text| text.value),
    })
}

fn read_form(section: &Section<'_, '_>) -> Option<FormFlow> {
    let Some(form) = section.table("form") else {
        if !section.has("form") {
            let example =
                "form = { page = \"/login\", identifier = \"user\", password = \"password\" }";
            section.missing("form", example);
        }
        return None;
    };
    form.expect_keys(keys::AUTH_FORM);
    let page = need_place(&form, "page", "/login");
    let identifier = form.need_text("identifier", "identifier = \"user\"");
    let password = form.need_text("password", "password = \"password\"");
    let css = form.text("css");
    let cookies = form.texts("cookies").unwrap_or_default();
    Some(FormFlow {
        page: page?,
        css: match css {
            Some(text) => Some(read_css(&form, &text)?),
            None => None,
        },
        identifier_field: identifier?.value,
        password_field: password?.value,
        cookies: cookies.into_iter().map(|text| text.value).collect(),
    })
}

fn read_parameters(section: &Section<'_, '_>, placeholders: &[&str]) -> Vec<(String, String)> {
    let Some(table) = section.table("parameters") else {
        return Vec::new();
    };
    let mut parameters = Vec::new();
    for entry in table.entries() {
        let Some(text) = entry.text else {
            let message = format!("`{}` must be a text", entry.name);
            table.report(&entry.span, message, "write for example `name = \"…\"`");
            continue;
        };
        if text.value.contains('{') && !placeholders.contains(&text.value.as_str()) {
            table.unknown_word(&text, "a placeholder", placeholders);
        }
        parameters.push((entry.name, text.value));
    }
    parameters
}

fn read_test(section: &Section<'_, '_>) -> Option<TestCall> {
    let test = section.table("test")?;
    test.expect_keys(keys::AUTH_TEST);
    let header = test.text("scopes_header");
    Some(TestCall {
        place: need_place(&test, "path", "/api/v1/me")?,
        account: test.text("account").map(|text| text.value),
        scopes_header: header.map(|text| text.value.to_ascii_lowercase()),
    })
}

pub(super) fn need_place(section: &Section<'_, '_>, key: &str, example: &str) -> Option<Place> {
    let text = section.need_text(key, &format!("{key} = \"{example}\""))?;
    if !text.value.starts_with('/') {
        return read_address(section, &text).map(Place::Address);
    }
    let is_plain = text
        .value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte));
    if is_plain && !text.value.starts_with("//") && !text.value.contains("..") {
        return Some(Place::Path(text.value));
    }
    let message = format!("`{}` is no path", text.value.escape_debug());
    section.report(
        &text.span,
        message,
        format!("write for example `{example}`"),
    );
    None
}

/// An address of its own: encrypted, or on the own machine.
fn read_address(section: &Section<'_, '_>, text: &Placed<String>) -> Option<Url> {
    let url = Url::parse(&text.value).ok().filter(|url| {
        let is_own = matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_own);
        let is_bare = url.username().is_empty() && url.password().is_none();
        is_safe && is_bare && url.has_host() && url.fragment().is_none()
    });
    if url.is_none() {
        let message = format!("`{}` is no address", text.value.escape_debug());
        let help = "write a path of the host, `/oauth/token`, or `https://login.example/token`";
        section.report(&text.span, message, help);
    }
    url
}
