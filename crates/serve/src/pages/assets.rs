//! What pages load: the style sheet, the script and the icon, which are part of the binary.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::LazyLock;

struct Asset {
    name: &'static str,
    kind: &'static str,
    body: &'static str,
    /// Its digest: whoever has the same need not load it again.
    tag: String,
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        asset(
            "kittiwake.css",
            "text/css; charset=utf-8",
            include_str!("../../assets/kittiwake.css"),
        ),
        asset(
            "kittiwake.js",
            "text/javascript; charset=utf-8",
            include_str!("../../assets/kittiwake.js"),
        ),
        asset(
            "icon.svg",
            "image/svg+xml",
            include_str!("../../assets/icon.svg"),
        ),
    ]
});

fn asset(name: &'static str, kind: &'static str, body: &'static str) -> Asset {
    let mut tag = String::from("\"");
    for byte in &Sha256::digest(body)[..12] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    Asset {
        name,
        kind,
        body,
        tag,
    }
}

/// `GET /assets/{name}`.
pub(super) async fn get(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let asked = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|it| it.to_str().ok());
    let is_known = asked.is_some_and(|tags| {
        tags.split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == asset.tag)
    });
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        asset.body.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    // Asked for every time, and sent only if it has changed.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&asset.tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_browser_has_is_not_sent_again() {
        let first = get(Path("kittiwake.css".into()), HeaderMap::new()).await;
        assert_eq!(first.status(), StatusCode::OK);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let again = get(Path("kittiwake.css".into()), headers.clone()).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let other = get(Path("kittiwake.js".into()), headers).await;
        assert_eq!(other.status(), StatusCode::OK);
        let none = get(Path("../Cargo.toml".into()), HeaderMap::new()).await;
        assert_eq!(none.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for asset in ASSETS.iter() {
            let body = asset.body.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !body.contains("http:") && !body.contains("https:"),
                "{}",
                asset.name
            );
        }
    }
}
