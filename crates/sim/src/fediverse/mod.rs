//! A fediverse: many instances over one world, told apart by the name that they are called by.
//!
//! Everybody has a home, which knows everything about them. Other instances know them only in part:
//! see `view.rs`. What differs from software to software is in `software.rs`, `dress.rs` and
//! `about.rs`; instances that are out of order or lie are in `trouble.rs` and `lies.rs`; `canary.rs`
//! listens where nobody may go.

mod about;
mod canary;
mod dress;
mod lies;
mod software;
mod trouble;
mod view;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::answer::Answer;
use crate::mastodon::{Renderer, Route};
use crate::world::HomePlan;

pub(crate) use canary::Canary;
pub(crate) use lies::Lie;
pub(crate) use software::Software;
pub(crate) use trouble::{BAD_GATEWAY, Trouble};
pub(crate) use view::Reception;

/// As many as a name of two or three digits can tell apart.
pub(crate) const INSTANCES_MAX: usize = 999;

/// One instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) number: usize,
    pub(crate) software: Software,
    pub(crate) trouble: Option<Trouble>,
    /// Host and port of all instances, in the order of their numbers.
    pub(crate) hosts: Arc<[String]>,
    canary: SocketAddr,
}

/// What a fediverse is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) instances: usize,
    /// How many of them are out of order or lie.
    pub(crate) troubled: usize,
    /// The port that all of them are reached at.
    pub(crate) port: u16,
    pub(crate) canary: SocketAddr,
}

impl Plan {
    /// `i01.localhost:3000` and so on.
    fn hosts(self) -> Arc<[String]> {
        let port = match self.port {
            // Nobody writes it.
            80 => String::new(),
            port => format!(":{port}"),
        };
        (1..=self.instances)
            .map(|number| format!("i{number:02}.localhost{port}"))
            .collect()
    }

    pub(crate) fn instances(self) -> Vec<Instance> {
        let hosts = self.hosts();
        (0..self.instances)
            .map(|number| {
                let trouble = Trouble::of(self, number);
                Instance {
                    number,
                    software: match trouble {
                        // Lies are told in a tongue that everybody understands.
                        Some(Trouble::Lying) => Software::Mastodon,
                        _ => Software::of(number),
                    },
                    trouble,
                    hosts: Arc::clone(&hosts),
                    canary: self.canary,
                }
            })
            .collect()
    }
}

impl Instance {
    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.hosts[self.number]
    }

    pub(crate) fn home_plan(&self) -> HomePlan {
        self.software.home_plan(format!("http://{}", self.host()))
    }

    pub(crate) fn is_lying(&self) -> bool {
        self.trouble == Some(Trouble::Lying)
    }

    /// Whether what it says of its own people can be had and relied on.
    pub(crate) const fn is_sound(&self) -> bool {
        matches!(self.trouble, None | Some(Trouble::Slow))
    }

    /// An answer as this instance gives it.
    pub(crate) fn in_its_own_way(
        &self,
        renderer: &Renderer<'_>,
        route: &Route,
        answer: Answer,
    ) -> Answer {
        let answer = self.dressed(renderer, answer);
        if self.is_lying() {
            return self.twisted(renderer, route, answer);
        }
        answer
    }
}
