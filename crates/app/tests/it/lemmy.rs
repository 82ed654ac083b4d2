//! Lemmy, as its definition has it, against a small strict server that was written from the code of
//! version 0.19 and not from the definition.

mod server;
mod world;

use crate::counterpart::Counterpart;
use crate::oracle::Rows;
use crate::strict::{Held, finish, kill_and_resume, rows_of};
use crate::support::{Folder, open, rows};
use server::{Server, Shown};
use std::process::Command;
use std::sync::Arc;
use world::{Comment, GUS, HERMIT, World};

struct Scene {
    folder: Folder,
    server: Arc<Server>,
    counterpart: Counterpart,
}

impl Scene {
    fn new() -> Self {
        let server = Arc::new(Server::new(World::new()));
        let answering = Arc::clone(&server);
        let counterpart = Counterpart::start(move |call, stream| answering.answer(call, stream));
        Self {
            folder: Folder::new(),
            server,
            counterpart,
        }
    }

    /// Everything: a person, one who is not there, a community, a search, and the server itself.
    fn crawl(&self, words: &str) -> Command {
        let mut command = self.folder.kittiwake();
        command.args(["crawl", "lemmy", "ada", "nobody", "!birds", "search:Post 5"]);
        command.args([
            "--host",
            &self.counterpart.address,
            "--into",
            "t.db",
            "--quiet",
        ]);
        command.args(["--depth", "4", "--robots", "all", "--concurrency", "4"]);
        command.args(words.split_whitespace());
        command
    }

    fn targets(&self) -> Vec<String> {
        let targets = self.counterpart.calls().into_iter().map(|call| call.target);
        targets.filter(|target| !target.is_empty()).collect()
    }

    /// Nothing was asked for that the server would refuse, and no limit was broken.
    fn check_manners(&self) {
        let state = self.server.state();
        assert_eq!(state.faults, [""; 0]);
        assert_eq!(state.violations, [""; 0]);
    }

    fn column(&self, sql: &str) -> Vec<String> {
        let found = rows(&open(&self.folder.path("t.db")), sql);
        found.into_iter().map(|row| row.join(" ")).collect()
    }

    fn host(&self) -> String {
        let address = &self.counterpart.address;
        address.trim_start_matches("http://").to_owned()
    }

    /// Holds the file against the server; `seen` are comments that were read before they were deleted.
    fn compare(&self, seen: &[u64]) {
        let (world, host) = (self.server.state().world.clone(), self.host());
        let shown = Shown {
            world: &world,
            host: &host,
        };
        let expected = Expected { shown, seen };
        let mut held = Held::open(&self.folder);
        let mut compare =
            |what: &str, expected: &Rows, sql: &str| held.compare(what, expected, sql);
        compare(
            "people",
            &expected.people(),
            "SELECT key AS \"@\", handle, display_name, description, is_bot, statuses_count,
                    extra ->> 'comments_count', extra ->> 'is_banned' FROM users",
        );
        compare(
            "posts and comments",
            &expected.writings(),
            "SELECT key AS \"@\", author AS \"@\", extra ->> 'title', text, reply_to AS \"@\",
                    replies_count, likes_count, deleted_us IS NOT NULL FROM statuses",
        );
        compare(
            "answers",
            &expected.answers(),
            "SELECT key AS \"@\", parent AS \"@\", root AS \"@\", author AS \"@\" FROM comments",
        );
        let sql = "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links";
        compare("links", &expected.links(), sql);
        compare(
            "objects",
            &expected.objects(),
            "SELECT key AS \"@\" FROM objects",
        );
        let sql = "SELECT key AS \"@\", reason FROM invalid_users WHERE until_us IS NULL";
        compare("gone", &expected.gone(), sql);
        held.finish();
    }
}

struct Expected<'a> {
    shown: Shown<'a>,
    seen: &'a [u64],
}

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

impl Expected<'_> {
    fn person(&self, id: u64) -> String {
        format!("person {}", self.shown.person_address(id))
    }

    fn post(&self, id: u64) -> String {
        format!("post {}", self.shown.post_address(id))
    }

    fn comment(&self, id: u64) -> String {
        format!("comment {}", self.shown.comment_address(id))
    }

    fn community(&self, id: u64) -> String {
        format!("community {}", self.shown.community_address(id))
    }

    fn people(&self) -> Rows {
        let people = self.shown.world.people.iter();
        let people = people
            .filter(|it| it.id != HERMIT && it.id != GUS)
            .map(|it| {
                let (posts, comments) = self.shown.world.counts_of(it.id);
                [
                    self.person(it.id),
                    format!("{}@{}", it.name, it.home.unwrap_or(self.shown.host)),
                    text(it.display_name.or(Some(it.name))),
                    text(it.bio),
                    u8::from(it.is_bot).to_string(),
                    posts.to_string(),
                    comments.to_string(),
                    u8::from(it.is_banned).to_string(),
                ]
            });
        rows_of(people)
    }

    /// What is shown of comments: all but those of whom nobody knows.
    fn comments(&self) -> impl Iterator<Item = &Comment> {
        let comments = self.shown.world.comments.iter();
        comments.filter(|it| it.creator != HERMIT)
    }

    /// Of what was gone when it was first seen it is known who wrote it and what it answers, so that the
    /// thread below it stays whole; not what it said.
    fn was_read(&self, comment: &Comment) -> bool {
        let is_gone = comment.is_deleted || comment.is_removed;
        !is_gone || self.seen.contains(&comment.id)
    }

    fn parent(&self, comment: &Comment) -> String {
        let above = comment.above.last();
        above.map_or_else(|| self.post(comment.post), |above| self.comment(*above))
    }

    fn posts(&self) -> impl Iterator<Item = &world::Post> {
        let posts = self.shown.world.posts.iter();
        posts.filter(|it| it.creator != HERMIT && !it.is_deleted && !it.is_hidden)
    }

    fn writings(&self) -> Rows {
        let world = self.shown.world;
        let posts = self.posts().map(|it| {
            [
                self.post(it.id),
                self.person(it.creator),
                it.title.clone(),
                text(it.body),
                String::new(),
                world.comments_under(it.id).to_string(),
                it.upvotes.to_string(),
                "0".to_owned(),
            ]
        });
        let comments = self.comments().map(|it| {
            let if_read = |value: String| {
                if self.was_read(it) {
                    value
                } else {
                    String::new()
                }
            };
            [
                self.comment(it.id),
                self.person(it.creator),
                String::new(),
                if_read(it.text.clone()),
                self.parent(it),
                if_read(world.comments_below(it.id).to_string()),
                if_read("1".to_owned()),
                u8::from(it.is_deleted || it.is_removed).to_string(),
            ]
        });
        rows_of(posts.chain(comments))
    }

    fn answers(&self) -> Rows {
        let answers = self.comments().map(|it| {
            let (root, author) = (self.post(it.post), self.person(it.creator));
            [self.comment(it.id), self.parent(it), root, author]
        });
        rows_of(answers)
    }

    fn links(&self) -> Rows {
        let mut links = Rows::new();
        let mut add = |kind: &str, from: String, to: String| {
            links.insert(vec![kind.to_owned(), from, to]);
        };
        for post in self.posts() {
            add(
                "community",
                self.post(post.id),
                self.community(post.community),
            );
            if post.title.contains("Post 5") {
                add("found", self.post(post.id), "search Post 5".to_owned());
            }
        }
        for comment in self.comments().filter(|it| self.was_read(it)) {
            let post = self.shown.world.post(comment.post);
            add(
                "community",
                self.comment(comment.id),
                self.community(post.community),
            );
        }
        for moderator in self.shown.world.community(1).moderators {
            add("moderates", self.person(*moderator), self.community(1));
        }
        let instance = format!("instance {}", self.shown.host);
        add("admin", instance.clone(), self.person(3));
        add("federates", instance.clone(), "peer sky.example".to_owned());
        add("blocks", instance, "peer spam.example".to_owned());
        links
    }

    fn objects(&self) -> Rows {
        rows_of([
            [self.community(1)],
            [self.community(2)],
            [format!("instance {}", self.shown.host)],
            ["peer sky.example".to_owned()],
            ["peer spam.example".to_owned()],
        ])
    }

    fn gone(&self) -> Rows {
        let nobody = format!("person nobody@{}", self.shown.host);
        rows_of([
            [self.person(GUS), "gone".to_owned()],
            [nobody, "not found".to_owned()],
        ])
    }
}

#[test]
fn a_crawl_of_lemmy_that_was_killed_holds_what_the_server_has() {
    let scene = Scene::new();
    let crawl = || scene.crawl("--until-idle");
    kill_and_resume(&scene.folder, crawl, || scene.targets(), 25);
    scene.check_manners();
    scene.compare(&[]);
    let sql = "SELECT outcome || ': ' || reason FROM outcomes WHERE query = 'person_by_name' AND outcome <> 'ok'";
    assert_eq!(scene.column(sql), ["not found: couldnt_find_person"]);

    // What was deleted keeps what it said; what is new is found behind the mark.
    scene.server.state().world.go_on();
    finish(&mut scene.crawl("--again"));
    scene.check_manners();
    scene.compare(&[102]);
}
