//! The people, communities, posts and comments of a small Lemmy server.

#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    /// The server that it is at home on; none is the one that is asked.
    pub(crate) home: Option<&'static str>,
    pub(crate) display_name: Option<&'static str>,
    pub(crate) bio: Option<&'static str>,
    pub(crate) is_bot: bool,
    pub(crate) is_banned: bool,
    pub(crate) is_deleted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Community {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    pub(crate) home: Option<&'static str>,
    pub(crate) moderators: &'static [u64],
}

#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) id: u64,
    pub(crate) creator: u64,
    pub(crate) community: u64,
    pub(crate) title: String,
    pub(crate) body: Option<&'static str>,
    pub(crate) upvotes: u64,
    pub(crate) is_deleted: bool,
    /// Left out of lists, after the page was cut.
    pub(crate) is_hidden: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) creator: u64,
    pub(crate) post: u64,
    /// Those above it, from the top.
    pub(crate) above: Vec<u64>,
    pub(crate) text: String,
    pub(crate) is_deleted: bool,
    pub(crate) is_removed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) people: Vec<Person>,
    pub(crate) communities: Vec<Community>,
    pub(crate) posts: Vec<Post>,
    pub(crate) comments: Vec<Comment>,
}

pub(crate) const ADA: u64 = 1;
/// Deleted the account; a comment is left.
pub(crate) const GUS: u64 = 6;
/// Nobody leads to this one, nor to what it wrote.
pub(crate) const HERMIT: u64 = 9;
/// The post with the long thread.
pub(crate) const LONG: u64 = 62;

fn person(id: u64, name: &'static str) -> Person {
    Person {
        id,
        name,
        home: None,
        display_name: None,
        bio: None,
        is_bot: false,
        is_banned: false,
        is_deleted: false,
    }
}

fn post(id: u64, creator: u64, community: u64) -> Post {
    Post {
        id,
        creator,
        community,
        title: format!("Post {id}"),
        body: id.is_multiple_of(2).then_some("Seen on the *pier*."),
        upvotes: id % 5,
        is_deleted: false,
        is_hidden: false,
    }
}

fn comment(id: u64, creator: u64, post: u64, above: &[u64]) -> Comment {
    Comment {
        id,
        creator,
        post,
        above: above.to_vec(),
        text: format!("Comment {id}"),
        is_deleted: false,
        is_removed: false,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let mut posts: Vec<Post> = (1..=53).map(|id| post(id, ADA, 1 + id % 2)).collect();
        for hidden in posts.iter_mut().filter(|it| matches!(it.id, 10 | 20)) {
            hidden.is_hidden = true;
        }
        posts.extend([
            post(60, 2, 2),
            post(61, 2, 1),
            post(LONG, 8, 1),
            post(63, HERMIT, 3),
        ]);
        posts.push(Post {
            is_deleted: true,
            ..post(64, ADA, 1)
        });
        let mut comments = vec![
            comment(100, 2, 1, &[]),
            comment(101, ADA, 1, &[100]),
            comment(102, 7, 1, &[100, 101]),
            Comment {
                is_deleted: true,
                ..comment(103, 3, 1, &[])
            },
            comment(104, 5, 1, &[103]),
            Comment {
                is_removed: true,
                ..comment(105, 4, 1, &[])
            },
            comment(106, GUS, 1, &[100]),
            comment(107, HERMIT, 63, &[]),
            comment(108, 3, 60, &[]),
            comment(109, 4, 60, &[108]),
        ];
        comments.extend((200..320).map(|id| comment(id, ADA, LONG, &[])));
        Self {
            people: people(),
            communities: communities(),
            posts,
            comments,
        }
    }

    /// Somebody answers, somebody deletes what they wrote, and a post is voted for.
    pub(crate) fn go_on(&mut self) {
        self.comments.push(comment(400, 5, 1, &[100, 101]));
        for gone in self.comments.iter_mut().filter(|it| it.id == 102) {
            gone.is_deleted = true;
        }
        for liked in self.posts.iter_mut().filter(|it| it.id == 1) {
            liked.upvotes = 99;
        }
    }

    pub(crate) fn person(&self, id: u64) -> &Person {
        let found = self.people.iter().find(|it| it.id == id);
        found.expect("a person")
    }

    pub(crate) fn community(&self, id: u64) -> &Community {
        let found = self.communities.iter().find(|it| it.id == id);
        found.expect("a community")
    }

    pub(crate) fn post(&self, id: u64) -> &Post {
        self.posts.iter().find(|it| it.id == id).expect("a post")
    }

    /// How many comments a post counts: those that are there.
    pub(crate) fn comments_under(&self, post: u64) -> usize {
        let comments = self.comments.iter().filter(|it| it.post == post);
        comments
            .filter(|it| !it.is_deleted && !it.is_removed)
            .count()
    }

    /// How many stand below a comment.
    pub(crate) fn comments_below(&self, comment: u64) -> usize {
        let comments = self.comments.iter();
        comments.filter(|it| it.above.contains(&comment)).count()
    }

    /// Posts and comments that a profile counts.
    pub(crate) fn counts_of(&self, person: u64) -> (usize, usize) {
        let posts = self
            .posts
            .iter()
            .filter(|it| it.creator == person && !it.is_deleted);
        let comments = self.comments.iter().filter(|it| it.creator == person);
        (
            posts.count(),
            comments
                .filter(|it| !it.is_deleted && !it.is_removed)
                .count(),
        )
    }
}

fn people() -> Vec<Person> {
    vec![
        Person {
            display_name: Some("Ada Finch"),
            bio: Some("Counts gulls."),
            ..person(ADA, "ada")
        },
        Person {
            home: Some("sky.example"),
            ..person(2, "ben")
        },
        person(3, "cleo"),
        Person {
            is_banned: true,
            ..person(4, "dora")
        },
        Person {
            is_bot: true,
            ..person(5, "eli")
        },
        Person {
            is_deleted: true,
            ..person(GUS, "gus")
        },
        person(7, "hal"),
        person(8, "ida"),
        person(HERMIT, "joy"),
    ]
}

fn communities() -> Vec<Community> {
    vec![
        Community {
            id: 1,
            name: "birds",
            home: None,
            moderators: &[ADA, 3],
        },
        Community {
            id: 2,
            name: "terns",
            home: Some("sky.example"),
            moderators: &[2],
        },
        Community {
            id: 3,
            name: "silence",
            home: None,
            moderators: &[HERMIT],
        },
    ]
}
