//! The accounts, repositories, issues and comments of a small GitHub.

#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) id: u64,
    pub(crate) login: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) bio: Option<&'static str>,
    pub(crate) location: Option<&'static str>,
    /// Suspended: no list names it, and it answers to nobody.
    pub(crate) is_gone: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Repo {
    pub(crate) id: u64,
    pub(crate) owner: u64,
    pub(crate) name: &'static str,
    pub(crate) description: Option<&'static str>,
    pub(crate) topics: &'static [&'static str],
    pub(crate) has_issues: bool,
    pub(crate) is_taken_down: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Issue {
    pub(crate) id: u64,
    pub(crate) repo: u64,
    pub(crate) number: u64,
    pub(crate) author: Option<u64>,
    pub(crate) is_pull: bool,
    pub(crate) title: &'static str,
    pub(crate) body: Option<&'static str>,
    pub(crate) labels: &'static [&'static str],
    pub(crate) assignees: &'static [u64],
    pub(crate) likes: u64,
    pub(crate) created: String,
    pub(crate) updated: String,
    pub(crate) is_deleted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) issue: u64,
    pub(crate) author: Option<u64>,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) accounts: Vec<Account>,
    /// Who follows whom.
    pub(crate) follows: Vec<(u64, u64)>,
    pub(crate) repos: Vec<Repo>,
    /// Names that repositories had before.
    old_names: Vec<(String, u64)>,
    /// Who starred what.
    pub(crate) stars: Vec<(u64, u64)>,
    pub(crate) issues: Vec<Issue>,
    pub(crate) comments: Vec<Comment>,
}

/// Suspended in the end.
pub(crate) const GUS: u64 = 9;
/// Nobody leads to this account, nor to what it has.
pub(crate) const HERMIT: u64 = 12;

fn account(
    id: u64,
    login: &'static str,
    kind: &'static str,
    name: Option<&'static str>,
) -> Account {
    Account {
        id,
        login,
        kind,
        name,
        bio: None,
        location: None,
        is_gone: false,
    }
}

fn repo(id: u64, owner: u64, name: &'static str) -> Repo {
    Repo {
        id,
        owner,
        name,
        description: None,
        topics: &[],
        has_issues: true,
        is_taken_down: false,
    }
}

fn issue(id: u64, repo: u64, number: u64, author: Option<u64>, title: &'static str) -> Issue {
    let day = id % 28 + 1;
    Issue {
        id,
        repo,
        number,
        author,
        is_pull: false,
        title,
        body: Some("See the *photos*."),
        labels: &[],
        assignees: &[],
        likes: 0,
        created: format!("2026-09-{day:02}T10:00:00Z"),
        updated: format!("2026-10-{day:02}T10:00:00Z"),
        is_deleted: false,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            accounts: accounts(),
            follows: vec![
                (1, 2),
                (1, 3),
                (1, 4),
                (1, 6),
                (1, 7),
                (1, 8),
                (1, 9),
                (2, 1),
                (3, 1),
                (6, 1),
                (7, 1),
                (8, 1),
                (9, 1),
                (5, 1),
                (2, 3),
                (3, 2),
                (8, 7),
            ],
            repos: repos(),
            old_names: vec![("marsh/old".to_owned(), 504)],
            stars: vec![
                (1, 500),
                (1, 501),
                (1, 503),
                (1, 504),
                (1, 506),
                (2, 500),
                (6, 501),
                (8, 504),
                (HERMIT, 502),
            ],
            issues: issues(),
            comments: comments(),
        }
    }

    /// The account 2 takes another login, and somebody new takes the old one, with a life of their own.
    /// Another account is suspended, an issue deleted, and one is answered.
    pub(crate) fn go_on(&mut self) {
        for gone in self.accounts.iter_mut().filter(|it| it.id == GUS) {
            gone.is_gone = true;
        }
        for gone in self.issues.iter_mut().filter(|it| it.id == 9010) {
            gone.is_deleted = true;
        }
        for answered in self.issues.iter_mut().filter(|it| it.id == 9005) {
            "2026-11-11T11:11:11Z".clone_into(&mut answered.updated);
        }
        let text = "Comment 20".to_owned();
        self.comments.push(Comment {
            id: 20,
            issue: 9005,
            author: Some(7),
            text,
        });
        for account in self.accounts.iter_mut().filter(|it| it.id == 2) {
            account.login = "Benjamin";
        }
        self.old_names.push(("ben/Nests".to_owned(), 501));
        self.accounts
            .push(account(13, "ben", "User", Some("Another Ben")));
        self.follows.push((HERMIT, 13));
        self.follows.push((13, HERMIT));
    }

    pub(crate) fn by_login(&self, login: &str) -> Option<&Account> {
        let mut accounts = self.accounts.iter();
        accounts.find(|it| it.login.eq_ignore_ascii_case(login))
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Account> {
        let id: u64 = id.parse().ok()?;
        self.accounts.iter().find(|it| it.id == id)
    }

    pub(crate) fn followers(&self, id: u64) -> Vec<&Account> {
        let from = self.follows.iter().filter(|(_, to)| *to == id);
        from.filter_map(|(from, _)| self.shown(*from)).collect()
    }

    pub(crate) fn following(&self, id: u64) -> Vec<&Account> {
        let to = self.follows.iter().filter(|(from, _)| *from == id);
        to.filter_map(|(_, to)| self.shown(*to)).collect()
    }

    /// As lists show it.
    fn shown(&self, id: u64) -> Option<&Account> {
        self.by_id(&id.to_string()).filter(|it| !it.is_gone)
    }

    pub(crate) fn starred(&self, id: u64) -> Vec<&Repo> {
        let repos = self.stars.iter().filter(|(from, _)| *from == id);
        repos
            .filter_map(|(_, repo)| self.repo_by_id(&repo.to_string()))
            .collect()
    }

    pub(crate) fn stars_of(&self, repo: u64) -> usize {
        self.stars.iter().filter(|(_, to)| *to == repo).count()
    }

    pub(crate) fn repo_by_id(&self, id: &str) -> Option<&Repo> {
        let id: u64 = id.parse().ok()?;
        self.repos.iter().find(|it| it.id == id)
    }

    pub(crate) fn repo_by_name(&self, full_name: &str) -> Option<&Repo> {
        let mut repos = self.repos.iter();
        repos.find(|it| self.full_name(it).eq_ignore_ascii_case(full_name))
    }

    /// The repository that was called so before, if nobody is called so now.
    pub(crate) fn moved_from(&self, full_name: &str) -> Option<&Repo> {
        let mut names = self.old_names.iter();
        let (_, id) = names.find(|(old, _)| old.eq_ignore_ascii_case(full_name))?;
        self.repo_by_id(&id.to_string())
    }

    pub(crate) fn full_name(&self, repo: &Repo) -> String {
        let owner = self.by_id(&repo.owner.to_string());
        format!("{}/{}", owner.map_or("", |owner| owner.login), repo.name)
    }

    pub(crate) fn full_name_of(&self, repo: u64) -> String {
        let repo = self.repo_by_id(&repo.to_string());
        repo.map_or_else(String::new, |repo| self.full_name(repo))
    }

    pub(crate) fn issue_of(&self, repo: u64, number: &str) -> Option<&Issue> {
        let number: u64 = number.parse().ok()?;
        let mut issues = self.issues.iter();
        issues.find(|it| it.repo == repo && it.number == number)
    }

    pub(crate) fn comments_of(&self, issue: u64) -> Vec<&Comment> {
        self.comments
            .iter()
            .filter(|it| it.issue == issue)
            .collect()
    }
}

fn accounts() -> Vec<Account> {
    vec![
        Account {
            bio: Some("Counts gulls & waders."),
            location: Some("Hythe"),
            ..account(1, "Ada", "User", Some("Ada Finch"))
        },
        account(2, "ben", "User", Some("Ben Tern")),
        account(3, "Cleo", "User", None),
        account(4, "marsh", "Organization", Some("The Marsh")),
        account(5, "tidy[bot]", "Bot", None),
        account(6, "Dora", "User", None),
        account(7, "Eli", "User", Some("Eli Stint")),
        account(8, "Fay", "User", None),
        account(GUS, "Gus", "User", Some("Gus Smew")),
        account(10, "Hal", "User", None),
        account(11, "Ida", "User", None),
        account(HERMIT, "Joy", "User", Some("Joy Knot")),
    ]
}

fn repos() -> Vec<Repo> {
    vec![
        Repo {
            description: Some("Photos of gulls"),
            topics: &["gulls", "waders"],
            ..repo(500, 4, "gulls")
        },
        repo(501, 2, "Nests"),
        repo(502, HERMIT, "secret"),
        Repo {
            has_issues: false,
            ..repo(503, 4, "silent")
        },
        repo(504, 4, "Reeds"),
        Repo {
            is_taken_down: true,
            ..repo(505, 4, "taken")
        },
        repo(506, 3, "eggs"),
    ]
}

fn issues() -> Vec<Issue> {
    let ada = Some(1);
    vec![
        Issue {
            likes: 3,
            labels: &["bug", "Good First Issue"],
            assignees: &[2, 3],
            ..issue(9001, 500, 1, ada, "Wings are upside down")
        },
        Issue {
            labels: &["Bug"],
            ..issue(9002, 500, 2, Some(11), "No terns")
        },
        Issue {
            is_pull: true,
            ..issue(9003, 500, 3, Some(2), "Turn the wings")
        },
        // The account is gone, and nobody stands in for it.
        Issue {
            body: None,
            ..issue(9004, 500, 4, None, "Left behind")
        },
        issue(9005, 500, 5, Some(3), "Too many gulls"),
        issue(9006, 501, 1, ada, "An empty nest"),
        issue(9007, 501, 2, Some(6), "A full nest"),
        issue(9008, 501, 3, ada, "Another nest"),
        issue(9009, 501, 4, ada, "A third nest"),
        issue(9010, 504, 1, Some(3), "Reeds"),
        issue(9011, 502, 1, Some(HERMIT), "Nobody knows"),
        Issue {
            is_pull: true,
            ..issue(9012, 501, 5, ada, "Mend the nest")
        },
    ]
}

fn comments() -> Vec<Comment> {
    let comment = |id: u64, issue: u64, author: Option<u64>| Comment {
        id,
        issue,
        author,
        text: format!("Comment {id}"),
    };
    vec![
        comment(1, 9001, Some(2)),
        comment(2, 9001, Some(1)),
        comment(3, 9001, None),
        comment(4, 9001, Some(5)),
        comment(5, 9001, Some(3)),
        comment(6, 9006, Some(10)),
        comment(7, 9003, Some(4)),
        comment(8, 9002, Some(11)),
        comment(9, 9011, Some(HERMIT)),
    ]
}
