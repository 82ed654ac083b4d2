//! The definitions that a server knows: those of the program, and that of the crawl. A name is never taken for
//! a file's.

use super::program::missing;
use crate::definitions::SHIPPED;
use crate::place::Place;
use kittiwake_model::RunRecord;
use kittiwake_network::Network;
use kittiwake_serve::desk::{
    CheckedDefinition, DefinitionText, DefinitionView, LoginMethodView, RobotView,
};
use kittiwake_serve::{DeskError, DeskErrorKind};
use std::sync::OnceLock;

pub(super) struct Known {
    run: Option<RunRecord>,
}

/// What is wrong with a definition, if anything is.
pub(super) fn check(text: &str) -> CheckedDefinition {
    match Network::parse("definition.toml", text) {
        Ok(network) => CheckedDefinition {
            is_sound: true,
            errors: String::new(),
            name: Some(network.name().to_string()),
            digest: Some(network.digest().to_string()),
        },
        Err(errors) => CheckedDefinition {
            is_sound: false,
            errors: errors.to_string(),
            name: None,
            digest: None,
        },
    }
}

/// What is shown of the program's own definitions. They stay the same, and reading all of them takes a while.
fn shipped() -> &'static [DefinitionView] {
    static SHOWN: OnceLock<Vec<DefinitionView>> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let known = Known::new(None);
        let texts = SHIPPED.iter().filter_map(|(name, _)| known.text(name).ok());
        texts.map(|it| it.view).collect()
    })
}

impl Known {
    pub(super) fn new(run: Option<RunRecord>) -> Self {
        Self { run }
    }

    pub(super) fn run(&self) -> Option<&RunRecord> {
        self.run.as_ref()
    }

    /// The definition of that name: the crawl's own first.
    fn source(&self, name: &str) -> Option<(&str, bool)> {
        let own = self.run.as_ref().filter(|run| &*run.network == name);
        if let Some(run) = own {
            return Some((&run.definition_text, true));
        }
        let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        shipped.map(|(_, text)| (*text, false))
    }

    pub(super) fn network(&self, name: &str) -> Result<Network, DeskError> {
        let Some((text, _)) = self.source(name) else {
            return Err(missing(
                "there is no such network; GET /api/definitions lists them",
            ));
        };
        Network::parse(name, text)
            .map_err(|errors| DeskError::new(DeskErrorKind::Broken, errors.to_string()))
    }

    /// A network at a host: `NETWORK[@HOST]`, or at an address instead.
    pub(super) fn place(&self, named: &str, address: Option<&str>) -> Result<Place, DeskError> {
        let (name, host) = match named.rsplit_once('@') {
            Some((name, host)) => (name, Some(host)),
            None => (named, None),
        };
        let place = Place::of(self.network(name)?, host, address);
        place.map_err(super::program::refused)
    }

    pub(super) fn list(&self) -> Vec<DefinitionView> {
        let own = self.run.as_ref().map(|run| run.network.to_string());
        let own = own.and_then(|name| self.text(&name).ok()).map(|it| it.view);
        let is_other = |it: &&DefinitionView| own.as_ref().is_none_or(|own| own.name != it.name);
        let mut views: Vec<DefinitionView> = shipped().iter().filter(is_other).cloned().collect();
        views.extend(own);
        views.sort_by(|one, other| one.name.cmp(&other.name));
        views
    }

    pub(super) fn text(&self, name: &str) -> Result<DefinitionText, DeskError> {
        let network = self.network(name)?;
        let in_use = self.source(name).is_some_and(|(_, is_own)| is_own);
        let robots = network.robots().iter().map(|robot| RobotView {
            name: robot.name.to_string(),
            queries: robot
                .steps
                .iter()
                .map(|step| step.query.to_string())
                .collect(),
        });
        Ok(DefinitionText {
            view: DefinitionView {
                name: name.to_owned(),
                shipped: SHIPPED.iter().any(|(shipped, _)| *shipped == name),
                in_use,
                digest: network.digest().to_string(),
                robots: robots.collect(),
            },
            text: network.text().to_owned(),
        })
    }

    pub(super) fn login_methods(&self, name: &str) -> Result<Vec<LoginMethodView>, DeskError> {
        let network = self.network(name)?;
        let methods = network.auth().methods.iter();
        Ok(methods
            .map(|method| LoginMethodView {
                name: method.name.to_string(),
                kind: method.kind.word().to_owned(),
                description: method.description.clone(),
                page: method.page.as_ref().map(ToString::to_string),
                asked: method
                    .kind
                    .asked()
                    .iter()
                    .map(|it| (*it).to_owned())
                    .collect(),
            })
            .collect())
    }

    /// Whether the crawl can go on with a definition; its digest if so.
    pub(super) fn fit_to_apply(&self, name: &str, text: &str) -> Result<String, DeskError> {
        let own = self.run.as_ref().is_some_and(|run| &*run.network == name);
        if !own {
            return Err(missing(
                "the crawl asks another network; GET /api/definitions tells which is in use",
            ));
        }
        let network = Network::parse("definition.toml", text)
            .map_err(|errors| DeskError::new(DeskErrorKind::Invalid, errors.to_string()))?;
        if &**network.name() != name {
            return Err(DeskError::new(
                DeskErrorKind::Invalid,
                format!(
                    "the definition is of {:?}, not of {name:?}",
                    &**network.name()
                ),
            ));
        }
        Ok(network.digest().to_string())
    }
}
