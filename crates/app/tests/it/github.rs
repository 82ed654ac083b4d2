//! GitHub, as its definition has it, against a small strict server that was written from the REST
//! documentation and not from the definition.

mod server;
mod show;
mod world;

use crate::counterpart::Counterpart;
use crate::oracle::Rows;
use crate::strict::{Held, finish, kill_and_resume, rows_of};
use crate::support::{Folder, open, rows};
use server::{Refusal, Server, TOKEN};
use std::process::Command;
use std::sync::Arc;
use world::{HERMIT, World};

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

    fn crawl(&self, words: &str) -> Command {
        let mut command = self.folder.kittiwake();
        command.env("GITHUB_TOKEN", TOKEN);
        command.args(["crawl", "github", "--host", &self.counterpart.address]);
        command.args(["--into", "t.db", "--quiet", "--contact", "me@example.org"]);
        command.args(words.split_whitespace());
        command
    }

    fn targets(&self) -> Vec<String> {
        let targets = self.counterpart.calls().into_iter().map(|call| call.target);
        targets.filter(|target| !target.is_empty()).collect()
    }

    /// Nothing was asked for that the documentation does not allow, and no limit was broken.
    fn check_manners(&self) {
        let state = self.server.state();
        assert_eq!(state.faults, [""; 0]);
        assert_eq!(state.violations, [""; 0]);
    }

    fn column(&self, sql: &str) -> Vec<String> {
        let found = rows(&open(&self.folder.path("t.db")), sql);
        found.into_iter().map(|row| row.join(" ")).collect()
    }
}

/// Seeds in every spelling: people, one who is not there, and repositories: one with issues, one that was
/// renamed, one without issues and one that was taken down.
const SEEDS: &str = "@ADA nobody id:7 repo:Marsh/Gulls https://github.com/marsh/old repo:marsh/silent repo:marsh/taken";

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

/// What a crawl of everything has to hold.
struct Expected {
    users: Rows,
    relations: Rows,
    issues: Rows,
    comments: Rows,
    repos: Rows,
    links: Rows,
    labels: Rows,
    invalid: Rows,
}

impl Expected {
    fn of(world: &World) -> Self {
        let is_known = |id: u64| id != HERMIT && id != 13;
        let user = |id: u64| format!("user {id}");
        let users = world.accounts.iter().filter(|it| is_known(it.id));
        let users = users.map(|it| {
            [
                user(it.id),
                it.login.to_owned(),
                text(it.name),
                text(it.bio),
                text(it.location),
                u8::from(it.kind == "Bot").to_string(),
                world.followers(it.id).len().to_string(),
                world.following(it.id).len().to_string(),
                it.kind.to_owned(),
            ]
        });
        // Whoever is gone has not stopped following anybody.
        let relations = world.follows.iter().filter(|(from, _)| is_known(*from));
        let known = || world.issues.iter().filter(|it| it.author != Some(HERMIT));
        let issues = known().map(|it| {
            [
                format!("issue {}", it.id),
                it.author.map(user).unwrap_or_default(),
                it.title.to_owned(),
                text(it.body),
                it.number.to_string(),
                world.full_name_of(it.repo),
                u8::from(it.is_pull).to_string(),
                world.comments_of(it.id).len().to_string(),
                it.likes.to_string(),
                u8::from(it.is_deleted).to_string(),
            ]
        });
        let comments = world.comments.iter().filter(|it| it.author != Some(HERMIT));
        let comments = comments.map(|it| {
            let issue = format!("issue {}", it.issue);
            let author = it.author.map(user).unwrap_or_default();
            [
                format!("comment {}", it.id),
                author,
                issue.clone(),
                issue.clone(),
                issue,
                it.text.clone(),
            ]
        });
        let repos = world.repos.iter();
        let repos = repos
            .filter(|it| it.owner != HERMIT && !it.is_taken_down)
            .map(|it| {
                [
                    format!("repo {}", it.id),
                    world.full_name(it),
                    text(it.description),
                    world.stars_of(it.id).to_string(),
                ]
            });
        let labels = known().flat_map(|it| it.labels);
        Self {
            users: rows_of(users),
            relations: rows_of(relations.map(|(from, to)| [user(*from), user(*to)])),
            issues: rows_of(issues),
            comments: rows_of(comments),
            repos: rows_of(repos),
            links: links(world),
            labels: rows_of(labels.map(|name| [format!("label {}", name.to_lowercase())])),
            invalid: rows_of(gone(world)),
        }
    }

    fn compare(&self, scene: &Scene) {
        let mut held = Held::open(&scene.folder);
        let mut compare =
            |what: &str, expected: &Rows, sql: &str| held.compare(what, expected, sql);
        compare(
            "users",
            &self.users,
            "SELECT key AS \"@\", handle, display_name, description, location, is_bot, followers_count,
                    following_count, extra ->> 'account_type' FROM users",
        );
        let sql = "SELECT source AS \"@\", target AS \"@\" FROM user_relations";
        compare("relations", &self.relations, sql);
        compare(
            "issues",
            &self.issues,
            "SELECT key AS \"@\", author AS \"@\", extra ->> 'title', text, extra ->> 'number',
                    extra ->> 'repository', extra ->> 'is_pull_request', replies_count, likes_count,
                    deleted_us IS NOT NULL FROM statuses",
        );
        compare(
            "comments",
            &self.comments,
            "SELECT key AS \"@\", author AS \"@\", status AS \"@\", parent AS \"@\", root AS \"@\", text
             FROM comments",
        );
        compare(
            "repositories",
            &self.repos,
            "SELECT key AS \"@\", extra ->> 'full_name', extra ->> 'description', extra ->> 'stars_count'
             FROM objects",
        );
        let sql = "SELECT kind, from_key AS \"@\", to_key AS \"@\" FROM links";
        compare("links", &self.links, sql);
        compare("labels", &self.labels, "SELECT key AS \"@\" FROM tags");
        let sql = "SELECT key AS \"@\", reason FROM invalid_users WHERE until_us IS NULL";
        compare("gone", &self.invalid, sql);
        held.finish();
    }
}

fn gone(world: &World) -> Vec<[String; 2]> {
    let accounts = world.accounts.iter().filter(|it| it.is_gone);
    let mut gone: Vec<_> = accounts
        .map(|it| [format!("user {}", it.id), "gone".to_owned()])
        .collect();
    gone.push(["user nobody".to_owned(), "not found".to_owned()]);
    gone
}

/// Stars, owners, topics, labels, who is to do it, and which issues are in a repository that was asked for.
fn links(world: &World) -> Rows {
    let mut links = Rows::new();
    let mut add = |kind: &str, from: String, to: String| {
        links.insert(vec![kind.to_owned(), from, to]);
    };
    for (from, to) in world.stars.iter().filter(|(from, _)| *from != HERMIT) {
        add("star", format!("user {from}"), format!("repo {to}"));
    }
    let repos = world.repos.iter();
    for repo in repos.filter(|it| it.owner != HERMIT && !it.is_taken_down) {
        let name = format!("repo {}", repo.id);
        add("owner", name.clone(), format!("user {}", repo.owner));
        for topic in repo.topics {
            add("tag", name.clone(), format!("topic {topic}"));
        }
    }
    for issue in world.issues.iter().filter(|it| it.author != Some(HERMIT)) {
        let name = format!("issue {}", issue.id);
        for label in issue.labels {
            add(
                "tag",
                name.clone(),
                format!("label {}", label.to_lowercase()),
            );
        }
        for id in issue.assignees {
            add("assigned", name.clone(), format!("user {id}"));
        }
        if matches!(issue.repo, 500 | 504) {
            add("in", name, format!("repo {}", issue.repo));
        }
    }
    links
}

#[test]
fn a_crawl_of_github_that_was_killed_holds_what_the_server_has() {
    let scene = Scene::new();
    let words = format!("{SEEDS} --depth 4 --robots all --until-idle --concurrency 4");
    kill_and_resume(
        &scene.folder,
        || scene.crawl(&words),
        || scene.targets(),
        45,
    );
    scene.check_manners();
    let world = scene.server.state().world.clone();
    Expected::of(&world).compare(&scene);
    let outcome = |query: &str| {
        let sql = format!(
            "SELECT DISTINCT outcome || ': ' || reason FROM outcomes WHERE query = '{query}' AND outcome NOT IN ('ok', 'empty')"
        );
        scene.column(&sql)
    };
    assert_eq!(outcome("repo_issues"), ["forbidden: issues are disabled"]);
    assert_eq!(
        outcome("repo_by_name"),
        ["blocked: taken down for legal reasons"]
    );
    assert_eq!(outcome("opened_issues"), ["forbidden: cannot be searched"]);
    assert_eq!(outcome("user_by_login"), ["not found: http 404"]);

    // Logins and names of repositories move; numbers do not. Who takes an old login is somebody else, and
    // what was deleted keeps what it said.
    scene.server.state().world.go_on();
    let robots = "relations,profiles,stars,comments,updates,repos";
    let words = format!("{SEEDS} --depth 4 --robots {robots} --again --concurrency 4");
    finish(&mut scene.crawl(&words));
    scene.check_manners();
    let world = scene.server.state().world.clone();
    Expected::of(&world).compare(&scene);
    let sql = "SELECT i.id FROM ids i JOIN ids c ON c.key = i.key WHERE i.alias = 'login' AND c.canonical AND c.id = '2'";
    assert_eq!(scene.column(sql), ["ben", "benjamin"]);
}

#[test]
fn a_403_that_is_a_limit_is_waited_for_and_is_no_outcome_of_anybody() {
    let check = |refusal: Refusal| {
        let scene = Scene::new();
        scene.server.state().refuse_after(3, refusal);
        let words = "ada --depth 1 --robots profiles,relations --until-idle --concurrency 1";
        finish(&mut scene.crawl(words));
        scene.check_manners();
        let sql = "SELECT count(*) FROM query_log WHERE outcome = 'rate limited'";
        assert_eq!(scene.column(sql), ["1"], "{refusal:?}");
        let sql = "SELECT DISTINCT outcome FROM outcomes ORDER BY outcome";
        assert_eq!(scene.column(sql), ["empty", "ok"], "{refusal:?}");
    };
    std::thread::scope(|scope| {
        for refusal in [Refusal::Primary, Refusal::Secondary] {
            scope.spawn(move || check(refusal));
        }
    });
}
