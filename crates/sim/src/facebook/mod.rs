//! Facebook's Graph API over the world: what is asked, and what is answered.
//!
//! Users are pages, what they write of their own and what they repeat of others are their posts, what answers a post is a
//! comment, likes are reactions of several kinds, and what is in posts are the photos of an album. Follows are counts.
//!
//! Written by hand from notes on the network's documentation, from recorded answers about pages, posts, albums and people,
//! and from memory; which lists and ids the shipped definition asks for was known. Pure: the time of the answer is an argument.
//!
//! - `fields.rs`: what is to be sent; `nodes.rs`: ids, and how a node is written; `listing.rs`: how lists are cut;
//!   `pages.rs`, `posts.rs`, `comments.rs`, `photos.rs`: what there is

mod comments;
mod fields;
mod listing;
mod nodes;
mod pages;
mod photos;
mod posts;
mod refusal;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use self::fields::{Asked, Field};
use self::listing::{Listed, Order, Place, Row};
use self::nodes::Node;
use self::refusal::Refused;
use crate::answer::Answer;
use crate::dialect::{Heard, Matter, Shown, Speech, View};
use crate::faults::{List, Walk, Walked};
use crate::world::{World, ids};

/// So many ids are taken in one call.
const IDS_MAX: usize = 50;
/// The version that is answered to whoever names none.
const VERSION: &str = "v26.0";

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Facebook;

const QUERIES: [&str; 14] = [
    "ids",
    "node",
    "posts",
    "feed",
    "tagged",
    "comments",
    "reactions",
    "likes",
    "albums",
    "photos",
    "accounts",
    "businesses",
    "search",
    "unknown",
];
/// Lists of things that have one.
/// The secret of the application that every token is for.
const APP_SECRET: &str = "laboratory-app-secret";

const EDGES: [&str; 10] = [
    "posts",
    "feed",
    "tagged",
    "comments",
    "reactions",
    "likes",
    "albums",
    "photos",
    "accounts",
    "businesses",
];

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Ids,
    Node(&'a str),
    Edge(&'a str, &'static str),
    Search,
    Unknown(&'a str),
}

impl Route<'_> {
    const fn query(&self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Node(_) => "node",
            Self::Edge(_, edge) => edge,
            Self::Search => "search",
            Self::Unknown(_) => "unknown",
        }
    }
}

fn is_version(part: &str) -> bool {
    let number = part.strip_prefix('v').and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(major, minor)| major.parse::<u8>().is_ok() && minor.parse::<u8>().is_ok())
}

fn route(heard: &Heard) -> Route<'_> {
    let mut parts = heard.segments();
    parts.retain(|part| !part.is_empty());
    if parts.first().is_some_and(|part| is_version(part)) {
        parts.remove(0);
    }
    match parts.as_slice() {
        [] => Route::Ids,
        ["pages", "search"] => Route::Search,
        [node] => Route::Node(node),
        [node, edge] => match EDGES.iter().find(|known| *known == edge) {
            Some(edge) => Route::Edge(node, edge),
            None => Route::Unknown(edge),
        },
        [_, _, rest, ..] => Route::Unknown(rest),
    }
}

impl Speech for Facebook {
    fn queries(&self) -> &'static [&'static str] {
        &QUERIES
    }

    fn limits(&self) -> &'static str {
        include_str!("limits.toml")
    }

    fn token<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        heard.params.get("access_token").or_else(|| heard.bearer())
    }

    fn matter(&self, heard: &Heard, world: &World) -> Matter {
        let route = route(heard);
        let get = |name| heard.params.get(name).unwrap_or_default().to_owned();
        let subject = match route {
            Route::Ids => get("ids"),
            Route::Node(node) | Route::Edge(node, _) => node.to_owned(),
            Route::Search => get("q"),
            Route::Unknown(_) => String::new(),
        };
        let cursor = get("after");
        let walk = match route {
            Route::Edge(node, "posts" | "feed") => ids::parse(node)
                .and_then(|id| world.user_with_id(id))
                .map(|user| Walk {
                    user,
                    list: List::Timeline,
                    is_later_page: !cursor.is_empty(),
                }),
            _ => None,
        };
        Matter {
            query: route.query(),
            subject,
            cursor,
            walk,
            tells_limits: false,
            is_free: false,
            is_wide: true,
        }
    }

    fn answer(&self, view: View<'_>, heard: &Heard) -> Answer {
        let graph = Graph { view, heard };
        graph.answer().unwrap_or_else(|refused| refused.answer())
    }

    fn walked(&self, view: View<'_>, heard: &Heard) -> Option<Walked> {
        let Route::Edge(node, "posts" | "feed") = route(heard) else {
            return None;
        };
        let graph = Graph { view, heard };
        let Ok(Node::Page(user)) = graph.node(node) else {
            return None;
        };
        graph.posts_walked(user, &graph.asked().ok()?)
    }
}

/// One answer in the making.
#[derive(Debug, Clone, Copy)]
struct Graph<'a> {
    view: View<'a>,
    heard: &'a Heard,
}

impl<'a> Graph<'a> {
    fn answer(&self) -> Result<Answer, Refused> {
        let route = route(self.heard);
        self.let_in(route)?;
        let listed = match route {
            Route::Ids => return self.several(),
            Route::Node(id) => {
                let node = self.written_node(&self.node(id)?, &self.asked()?.fields)?;
                return Ok(one_call(Answer::json(&node)));
            }
            Route::Edge(id, edge) => {
                let node = self.node(id)?;
                let list = self.list(&node, edge, &self.asked()?)?;
                list.ok_or_else(|| Refused::NoSuchField(edge.to_owned(), node.kind()))?
            }
            Route::Search => self.search(&self.asked()?)?,
            Route::Unknown(path) => return Err(Refused::NoSuchEdge(path.to_owned())),
        };
        Ok(Answer {
            spoilt: listed.spoilt,
            ..one_call(Answer::json(&listed.body))
        })
    }

    /// Whether whoever asks has shown that they know the application's secret, where that is wanted.
    fn proved(&self) -> Result<(), Refused> {
        let token = Facebook.token(self.heard).unwrap_or_default();
        let Some(proof) = self.heard.params.get("appsecret_proof") else {
            let is_wanted = token.starts_with("proof");
            return if is_wanted {
                Err(Refused::NoProof)
            } else {
                Ok(())
            };
        };
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(APP_SECRET.as_bytes()) else {
            return Err(Refused::WrongProof);
        };
        mac.update(token.as_bytes());
        let digest = mac.finalize().into_bytes();
        let right = digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        if proof == right {
            Ok(())
        } else {
            Err(Refused::WrongProof)
        }
    }

    /// Whether a caller may ask at all, and for this.
    fn let_in(&self, route: Route<'_>) -> Result<(), Refused> {
        if matches!(self.view.shown, Shown::Good | Shown::Narrow) {
            self.proved()?;
        }
        match (self.view.shown, route) {
            (Shown::Nothing, _) => Err(Refused::NoToken),
            (Shown::Wrong, _) => Err(Refused::WrongToken),
            (Shown::Revoked, _) => Err(Refused::RevokedToken),
            (Shown::Narrow, Route::Edge(_, "comments" | "reactions" | "likes" | "feed")) => {
                Err(Refused::UserContent)
            }
            (Shown::Narrow, Route::Edge(_, "albums" | "photos")) => {
                Err(Refused::Permission("pages_read_engagement"))
            }
            (Shown::Narrow | Shown::Good, _) => Ok(()),
        }
    }

    fn asked(&self) -> Result<Asked<'a>, Refused> {
        let fields = self.heard.params.get("fields").unwrap_or_default();
        let fields = fields::read(fields).ok_or(Refused::Syntax)?;
        Ok(Asked::of_call(&self.heard.params, fields))
    }

    /// All of some ids, or nothing at all if one of them is missing.
    fn several(&self) -> Result<Answer, Refused> {
        let ids = self.heard.params.get("ids").filter(|ids| !ids.is_empty());
        let ids = ids.ok_or(Refused::MissingParameter("ids"))?;
        let ids: BTreeSet<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
        if ids.len() > IDS_MAX {
            return Err(Refused::TooManyIds(ids.len()));
        }
        let asked = self.asked()?;
        let mut found = Map::new();
        for id in &ids {
            let node = self.written_node(&self.node(id)?, &asked.fields)?;
            found.insert((*id).to_owned(), node);
        }
        Ok(Answer {
            items: Some(ids.len() as u64),
            ..Answer::json(&found)
        })
    }

    /// A list of a node; none if such nodes do not have it.
    fn list(&self, node: &Node, edge: &str, asked: &Asked<'_>) -> Result<Option<Listed>, Refused> {
        let id = self.id(node);
        let listed = match (node, edge) {
            (Node::Page(user), "posts" | "feed") => self.posts(*user, edge, asked)?,
            (Node::Page(user), "albums") => self.albums(*user, asked)?,
            (Node::Page(user), "accounts") => self.accounts(*user, asked)?,
            // Who is named in posts is told with the posts; nobody here has a company or reacts to photos.
            (Node::Page(_), "tagged" | "businesses") | (Node::Photo(_), "reactions" | "likes") => {
                self.nothing(&id, edge, asked)?
            }
            (Node::Page(_) | Node::Album(_), "photos") => self.photos(node, asked)?,
            (Node::Post(_) | Node::Comment(_) | Node::Album(_) | Node::Photo(_), "comments") => {
                self.comments(node, edge, asked)?
            }
            (Node::Post(post), "reactions" | "likes") => {
                self.reactions((&id, post), edge, asked)?
            }
            (Node::Comment(comment), "reactions" | "likes") => {
                self.reactions((&id, &comment.said), edge, asked)?
            }
            _ => return Ok(None),
        };
        Ok(Some(listed))
    }

    /// A list within a node.
    fn nested(&self, node: &Node, field: &Field<'_>) -> Result<Option<Value>, Refused> {
        let Some(edge) = EDGES.iter().find(|edge| **edge == field.name) else {
            return Ok(None);
        };
        // What goes wrong with pages goes wrong with those that are walked.
        let graph = Graph {
            view: View {
                spoil: None,
                ..self.view
            },
            ..*self
        };
        let listed = graph.list(node, edge, &Asked::of_field(field))?;
        Ok(listed.map(|listed| listed.body))
    }

    fn nothing(&self, id: &str, edge: &str, asked: &Asked<'_>) -> Result<Listed, Refused> {
        let place = Place {
            node: id,
            edge,
            is_slow: false,
        };
        let rows: [Row<u64>; 0] = [];
        let page = self.page(&rows, Order::Rising, place, asked)?;
        let listed = page.listed(|_| Ok(Value::Null))?;
        Ok(listed.with_summary(asked, json!({ "total_count": 0 })))
    }

    /// The pages that somebody looks after: their own, and told to themselves alone.
    fn accounts(&self, user: u64, asked: &Asked<'_>) -> Result<Listed, Refused> {
        if self.owner() != Some(user) {
            return Err(Refused::Permission("pages_show_list"));
        }
        self.pages(vec![user], (&self.page_id(user), "accounts"), asked)
    }

    fn search(&self, asked: &Asked<'_>) -> Result<Listed, Refused> {
        let words = asked.get("q").ok_or(Refused::MissingParameter("q"))?;
        let words = words.to_lowercase();
        let world = self.view.world;
        let mut found: Vec<u64> = world.users_named_like(&words, self.view.now).collect();
        found.sort_unstable();
        self.pages(found, ("pages", "search"), asked)
    }

    fn pages(
        &self,
        users: Vec<u64>,
        (node, edge): (&str, &str),
        asked: &Asked<'_>,
    ) -> Result<Listed, Refused> {
        let row = |user| Row {
            number: user,
            is_shown: true,
            item: user,
        };
        let rows: Vec<Row<u64>> = users.into_iter().map(row).collect();
        let place = Place {
            node,
            edge,
            is_slow: false,
        };
        let page = self.page(&rows, Order::Rising, place, asked)?;
        page.listed(|user| self.written_node(&Node::Page(*user), &asked.fields))
    }

    fn token(&self) -> &'a str {
        Facebook.token(self.heard).unwrap_or_default()
    }

    /// The version that a call named.
    fn version(&self) -> &'a str {
        let first = self.heard.path.trim_matches('/').split('/').next();
        first.filter(|part| is_version(part)).unwrap_or(VERSION)
    }

    /// Whether the token is that of a page or of somebody who looks after some, and not the application's own.
    const fn speaks_for_a_page(&self) -> bool {
        self.view.owner.is_some()
    }

    /// Whose token it is: the one of that name or number, or else the most followed.
    fn owner(&self) -> Option<u64> {
        let name = self.view.owner?;
        let world = self.view.world;
        ids::parse(name)
            .and_then(|id| world.user_with_id(id))
            .or_else(|| world.user_named(name, self.view.now.at_us))
            .or_else(|| world.seed_users(self.view.now).next())
    }
}

/// Whatever is in a list, it counts as one call.
fn one_call(answer: Answer) -> Answer {
    Answer {
        items: Some(0),
        ..answer
    }
}
