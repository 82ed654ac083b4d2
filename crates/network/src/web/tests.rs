use super::*;

fn css(text: &str) -> Css {
    Css::parse(text).unwrap()
}

fn part(name: &str, selector: &str, taking: Taking) -> Part {
    Part {
        name: name.to_owned(),
        css: Some(css(selector)),
        within: None,
        is_optional: false,
        taking,
    }
}

fn text(name: &str, selector: &str) -> Part {
    part(name, selector, Taking::One(Piece::Text))
}

fn address(attribute: &str, without: &[&str], is_sorted: bool) -> Piece {
    Piece::Address(AddressRule {
        attribute: attribute.to_owned(),
        without: without.iter().map(|it| (*it).to_owned()).collect(),
        is_sorted,
        is_here: false,
    })
}

fn convert(parts: Vec<Part>, page: &str) -> Result<(String, u32), WebError> {
    let url = Url::parse("https://birds.example/u/ann?page=2").unwrap();
    let converted = WebRule { parts }.convert(page, &url, Some("ann"))?;
    Ok((converted.json, converted.mended))
}

fn people() -> Part {
    let own = Part {
        css: None,
        ..part(
            "id",
            "a",
            Taking::One(Piece::Attribute("data-id".to_owned())),
        )
    };
    let mut bio = text("bio", ".bio");
    bio.is_optional = true;
    let link = part("url", "a", Taking::One(address("href", &[], false)));
    part("people", "li.person", Taking::Each(vec![own, link, bio]))
}

#[test]
fn a_page_becomes_a_tree() {
    let page = "<title> Ann\n Gull</title><ul>\
        <li class=person data-id=7><a href='../u/bea#top'>Bea</a><p class=bio>\"Hi\"</p></li>\
        <li class=person data-id=8><a href='//other.example:443/x'>Cy</a></li></ul>\
        <i>1</i><i>2</i>";
    let parts = vec![
        text("title", "title"),
        people(),
        part("all", "i", Taking::All(Piece::Text)),
        part("markup", "li a", Taking::One(Piece::Markup)),
    ];
    let (json, mended) = convert(parts, page).unwrap();
    assert_eq!(
        json,
        r#"{"title":"Ann Gull","people":[{"id":"7","url":"https://birds.example/u/bea","bio":"\"Hi\""},{"id":"8","url":"https://other.example/x"}],"all":["1","2"],"markup":"Bea"}"#
    );
    assert_eq!(mended, 0);
}

#[test]
fn addresses_of_the_site_itself_can_be_asked_for() {
    let here = Piece::Address(AddressRule {
        attribute: "href".to_owned(),
        without: Vec::new(),
        is_sorted: false,
        is_here: true,
    });
    // What a page is completed by does not say where it is.
    let page = "<base href=https://other.example/><a href=/x></a><a href=https://birds.example/y></a>\
        <a href=http://birds.example/z></a><a href=https://birds.example:8443/></a>\
        <a href=https://birds.example.other.example/></a>";
    let (json, _) = convert(vec![part("all", "a", Taking::All(here))], page).unwrap();
    assert_eq!(json, r#"{"all":["https://birds.example/y"]}"#);
}

#[test]
fn what_a_page_has_nowhere_is_named() {
    let page = "<h1>Ann</h1><li class=person><a>no address</a></li>";
    let unfound = convert(vec![text("title", "h1.name"), people()], page).unwrap_err();
    let expected = ["title (h1.name)", "people.id (data-id)", "people.url (a)"];
    assert_eq!(
        unfound,
        WebError::Unfound(expected.map(str::to_owned).to_vec())
    );
    let none = convert(vec![people()], "<p>").unwrap_err();
    assert_eq!(
        none,
        WebError::Unfound(vec!["people (li.person)".to_owned()])
    );
}

#[test]
fn what_only_some_items_lack_is_counted() {
    let page = "<li class=person data-id=7><a href=/x>x</a></li><li class=person data-id=8></li>";
    let (json, mended) = convert(vec![people()], page).unwrap();
    assert!(json.contains(r#"{"id":"8"}"#), "{json}");
    assert_eq!(mended, 1);
}

#[test]
fn a_list_may_be_empty_if_it_is_there() {
    let list = || Part {
        within: Some(css("ul.people")),
        ..people()
    };
    assert_eq!(
        convert(vec![list()], "<ul class=people></ul>").unwrap().0,
        r#"{"people":[]}"#
    );
    let gone = convert(vec![list()], "<ol></ol>").unwrap_err();
    assert_eq!(
        gone,
        WebError::Unfound(vec!["people (ul.people)".to_owned()])
    );
    // Only what stands in it counts.
    let page = "<li class=person data-id=1><a href=/a></a></li><ul class=people></ul>";
    assert_eq!(convert(vec![list()], page).unwrap().0, r#"{"people":[]}"#);
}

#[test]
fn an_address_is_written_in_one_way() {
    let read = |href: &str, piece: Piece| {
        let page = format!("<a href='{href}'>");
        let parts = vec![part("it", "a", Taking::One(piece))];
        convert(parts, &page).map(|(json, _)| json)
    };
    let plain = || address("href", &[], false);
    for (href, url) in [
        ("?b=1&a=2#x", "https://birds.example/u/ann?b=1&a=2"),
        (
            " HTTPS://Birds.Example:443/a/../b ",
            "https://birds.example/b",
        ),
        (
            "https://user:secret@birds.example/",
            "https://birds.example/",
        ),
    ] {
        assert_eq!(
            read(href, plain()).unwrap(),
            format!("{{\"it\":\"{url}\"}}"),
            "{href}"
        );
    }
    let sorted = read("/x?b=1&utm=7&a=2", address("href", &["utm"], true)).unwrap();
    assert_eq!(sorted, r#"{"it":"https://birds.example/x?a=2&b=1"}"#);
    let bare = read("/x?b=1", address("href", &["*"], false)).unwrap();
    assert_eq!(bare, r#"{"it":"https://birds.example/x"}"#);
    for href in [
        "javascript:alert(1)",
        "mailto:a@b.example",
        "http://",
        "data:x",
    ] {
        assert!(read(href, plain()).is_err(), "{href}");
    }
    assert!(read(&format!("/{}", "x".repeat(3_000)), plain()).is_err());
    let page = "<base href='https://cdn.example/z/'><a href=y>";
    let parts = vec![part("it", "a", Taking::One(plain()))];
    assert_eq!(
        convert(parts, page).unwrap().0,
        r#"{"it":"https://cdn.example/z/y"}"#
    );
}

#[test]
fn what_was_asked_about_is_named() {
    let own = Part {
        css: None,
        is_optional: true,
        ..part("who", "a", Taking::Subject)
    };
    let (json, _) = convert(vec![own, text("title", "h1")], "<h1>x</h1>").unwrap();
    assert_eq!(json, r#"{"who":"ann","title":"x"}"#);
}

#[test]
fn items_within_items_are_bounded() {
    let fields = (0..40)
        .map(|number| text(&format!("f{number}"), "b"))
        .collect();
    let parts = vec![part("items", "div", Taking::Each(fields))];
    let rows = "<p><b>x</b>".repeat(4_000);
    let page = format!("{}{rows}", "<div>".repeat(200));
    let refused = convert(parts, &page).unwrap_err();
    assert_eq!(
        refused,
        WebError::TooLarge("more to look through than one page may hold")
    );
}

#[test]
fn what_is_not_found_is_told_within_bounds() {
    let unfound: Vec<String> = (0..9)
        .map(|it| format!("a{it} ({})", "x".repeat(500)))
        .collect();
    let words = unfound_words(&unfound);
    assert!(
        words.len() < 600 && words.ends_with(" and 4 more"),
        "{words}"
    );
}
