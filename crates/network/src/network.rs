//! A checked, compiled network.

use crate::auth::Auth;
use crate::blocks::BlockRule;
use crate::body::{Literal, Sending};
use crate::budget::LimitHeaders;
use crate::expression::Expression;
use crate::home::{HomeRule, Whom};
use crate::limit_status::LimitStatus;
use crate::page::{PageRule, SinceRule, TimeRule};
use crate::path::Path;
use crate::politeness::Politeness;
use crate::probe::{Capabilities, Probe};
use crate::seed::SeedRule;
use crate::select::Around;
use crate::shape::{AliasReference, CANONICAL, Items, Node, ReadPath, Shape, ShapeId};
use crate::stubs::Expand;
use crate::tariff::Tariff;
use crate::web::WebRule;
use crate::web::dom::Css;
use crate::web::robots::RobotsRule;
use kittiwake_model::{
    BudgetRule, Cost, Identity, LinkTable, List, Name, OutcomeCode, Role, Table, Unit,
};
use std::fmt;
use url::Url;

/// A network as its definition describes it.
pub struct Network {
    pub(crate) name: Name,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) verified_on: String,
    pub(crate) proved: Option<Proved>,
    pub(crate) proof: Option<String>,
    pub(crate) access: Option<String>,
    pub(crate) sources: Vec<String>,
    pub(crate) digest: Name,
    pub(crate) text: String,
    pub(crate) host: HostRule,
    /// Further hosts, by name.
    pub(crate) hosts: Vec<(Name, Url)>,
    /// Those of the hosts that take the network's credential.
    pub(crate) own_hosts: Vec<Name>,
    /// Hosts that a crawl asks besides, unless it is told otherwise.
    pub(crate) others: Vec<String>,
    pub(crate) probe: Option<Probe>,
    /// How programs have to call themselves.
    pub(crate) user_agent: Option<String>,
    pub(crate) auth: Auth,
    /// The type of the host itself, when the host is a subject.
    pub(crate) host_kind: Option<Name>,
    pub(crate) types: Vec<Type>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) queries: Vec<Query>,
    pub(crate) robots: Vec<Robot>,
    pub(crate) budgets: Vec<BudgetRule>,
    pub(crate) conditions: Vec<BudgetCondition>,
    /// The headers that speak of one budget alone.
    pub(crate) budget_headers: Vec<Option<LimitHeaders>>,
    /// What the things in an answer are charged to each budget.
    pub(crate) tariffs: Vec<Tariff>,
    pub(crate) limit_headers: Option<LimitHeaders>,
    pub(crate) politeness: Option<Politeness>,
    pub(crate) blocks: Vec<BlockRule>,
    pub(crate) robots_txt: Option<RobotsRule>,
    pub(crate) limit_status: Option<LimitStatus>,
    pub(crate) seeds: Vec<SeedRule>,
    pub(crate) errors: Vec<ErrorRule>,
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Network")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Whom a crawl is told to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostRule {
    /// The network has one address.
    Fixed(Url),
    /// There are many servers; the user names one.
    Instance,
    /// Nobody: every subject is asked for on its own host.
    Subject,
}

/// Where nobody is: what a network without a host of its own has in place of one. Nobody can have
/// a name that ends so (RFC 2606), and no query is asked there.
const NOWHERE: &str = "https://nowhere.invalid/";

/// How far a definition is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proved {
    /// Every query was asked of a real server, and its answers held against what was there.
    LiveServer,
    /// Recorded answers of real servers are read without remainder.
    Recordings,
    /// It was written from documentation.
    Documentation,
}

impl Proved {
    pub const ALL: [Self; 3] = [Self::LiveServer, Self::Recordings, Self::Documentation];

    /// As a definition writes it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::LiveServer => "live server",
            Self::Recordings => "recordings",
            Self::Documentation => "documentation",
        }
    }
}

/// A type of object.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) name: Name,
    pub(crate) shape: ShapeId,
    /// The queries that tell further ids of an object.
    pub(crate) resolve: Vec<Name>,
    /// Where its objects live.
    pub(crate) home: Vec<HomeRule>,
}

/// One question that can be asked.
#[derive(Debug)]
pub struct Query {
    pub name: Name,
    pub description: String,
    /// The type of the subject.
    pub kind: Name,
    /// How many subjects one call can ask for; 1 = one.
    pub batch_max: u32,
    /// Pages after which a walk ends, whatever the network offers.
    pub pages_max: u32,
    /// The list whose walks show which relations vanished.
    pub list: Option<List>,
    /// Whether a walk can begin at a mark ([`crate::Page::Since`]).
    pub incremental: bool,
    /// Whether marks are what a server tells its answers apart by.
    pub(crate) is_conditional: bool,
    /// Changes whenever old cursors would mean something else.
    pub paging_digest: Name,
    pub auth: AuthNeed,
    /// The permission that a credential needs, in the network's word.
    pub scope: Option<String>,
    pub(crate) whom: Whom,
    /// What a host has to be able to do.
    pub(crate) needs: Capabilities,
    /// The alias by which an answer shows whom it is about, where it has no canonical id.
    pub(crate) proof: Option<Name>,
    pub(crate) decode: Decode,
    /// What is taken of a web page.
    pub(crate) web: Option<WebRule>,
    /// How long its answers may be, where that is not the usual.
    pub(crate) bytes_max: Option<u32>,
    pub(crate) path: String,
    pub(crate) sending: Sending,
    pub(crate) parameters: Vec<(String, Literal)>,
    pub(crate) batch: Option<Batch>,
    /// How it is asked for what stubs name.
    pub(crate) expand: Option<Expand>,
    pub(crate) page: Option<PageRule>,
    /// Marks that are ids.
    pub(crate) since: Option<SinceRule>,
    /// Marks that are times.
    pub(crate) times: Option<TimeRule>,
    /// Parameters that may hold a secret: no cursor keeps them.
    pub(crate) secret_parameters: Vec<String>,
    /// What a call takes of the budgets that may apply.
    pub(crate) costs: Vec<QueryCost>,
    pub(crate) selects: Vec<Select>,
    /// Where the selects stand in an answer.
    pub(crate) tree: Node,
    pub(crate) slots: usize,
    /// The paths that selects read, and those that are left out on purpose.
    pub(crate) read: Vec<ReadPath>,
    pub(crate) ignored: Vec<Vec<Path>>,
}

/// The longest answers that a definition may ask for: 96 MiB, which some 200 000 records of the AT
/// Protocol take.
pub const ANSWER_BYTES_MAX: u32 = 96 << 20;

/// In what the answers to a query are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decode {
    Json,
    Xml,
    /// XML or JSON, as the first character says.
    Any,
    /// A whole repository of the AT Protocol.
    Car,
    /// A web page.
    Html,
}

/// Whether a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthNeed {
    /// Never.
    None,
    /// When there is one.
    Optional,
    /// Nothing is answered without one.
    Required,
}

/// How several subjects are put into one call.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) parameter: String,
    pub(crate) style: BatchStyle,
    pub(crate) alias: Name,
    /// The query by which those are asked for one by one who are missing from an answer.
    pub(crate) missing: Option<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchStyle {
    /// `id=1&id=2`
    Repeated,
    /// `id[]=1&id[]=2`
    Brackets,
    /// `id=1,2`
    Comma,
    /// `"id": ["1", "2"]`, in a body of JSON.
    List,
}

/// What is taken out of an answer.
#[derive(Debug)]
pub(crate) struct Select {
    /// The slot in the query's tree.
    pub(crate) slot: u32,
    /// Whether it stands at the top of the answer.
    pub(crate) is_top: bool,
    pub(crate) items: Items,
    /// The slot of what an XML list stands in: if that is there, a list that is not is empty.
    pub(crate) parent_slot: Option<u32>,
    pub(crate) shape: ShapeId,
    /// The alias that a bare id is.
    pub(crate) alias: Option<AliasReference>,
    pub(crate) is_subject: bool,
    /// The field of every item that the subject is.
    pub(crate) fills: Option<Filled>,
    pub(crate) link: Option<SelectLink>,
    /// By which price its items are charged: that of their type if nothing else is said.
    pub(crate) price: Name,
    /// Whether it is the relation to the subject that is charged for, and not who stands in it.
    pub(crate) charges_relation: bool,
    /// What is looked at of an item before its object is read.
    pub(crate) around: Option<Around>,
}

/// A field of items, and its group.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) group: Name,
    pub(crate) field: Name,
}

/// A relation between the subject and an item.
#[derive(Debug)]
pub(crate) struct SelectLink {
    pub(crate) kind: Name,
    pub(crate) table: LinkTable,
    /// Whether it goes from the subject to the item, or back.
    pub(crate) is_from_subject: bool,
}

/// When a budget applies.
#[derive(Debug, Default)]
pub(crate) struct BudgetCondition {
    pub(crate) authenticated: Option<bool>,
    /// Any one of these parameters in the request; none listed = always.
    pub(crate) any_parameter: Vec<String>,
}

/// What a call of one query takes of one budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryCost {
    /// The budget's place in the network's list.
    pub(crate) budget: usize,
    pub(crate) call: u64,
    pub(crate) item: u64,
    /// What may come on top of each item, for what stands beside it.
    pub(crate) beside: u64,
}

/// What an answer other than the expected one means.
#[derive(Debug)]
pub(crate) struct ErrorRule {
    /// Inclusive ranges of status codes.
    pub(crate) statuses: Vec<(u16, u16)>,
    pub(crate) matcher: Option<Expression>,
    /// Something on a web page.
    pub(crate) css: Option<Css>,
    /// Where it leads.
    pub(crate) redirect: Option<String>,
    /// Headers by their names in lower case, and what they have to say; any word where none is given.
    pub(crate) headers: Vec<(String, Option<String>)>,
    pub(crate) subject: Option<Name>,
    pub(crate) query: Option<Name>,
    pub(crate) outcome: OutcomeCode,
    pub(crate) reason: Option<String>,
    /// What is used up by this, and for how long, where the answer does not say.
    pub(crate) budget: Option<Name>,
    pub(crate) wait_us: Option<i64>,
}

/// A lane of a crawl: which queries are asked about a subject, in order.
#[derive(Debug, Clone)]
pub struct Robot {
    pub name: Name,
    pub title: String,
    pub description: String,
    /// The type of its subjects.
    pub kind: Name,
    pub steps: Vec<Step>,
    /// Robots whose finds it lives on.
    pub needs: Vec<Name>,
    /// Runs only when it is named.
    pub is_optional: bool,
    /// A subject whose column of this name holds 0 is not visited.
    pub unless_zero: Option<Name>,
    /// Its answers name what a post answers.
    pub names_parents: bool,
    /// Being described counts as the first visit.
    pub begins_visited: bool,
    /// The same for a subject of which this count is 0.
    pub visited_when_zero: Option<Name>,
    /// A subject that was visited is left alone for so long, unless a round is asked for.
    pub revisit_after_us: Option<i64>,
    /// Reposts of its subjects become its subjects too, so many steps on.
    pub repost_steps: u32,
    /// What answers its subjects, too.
    pub reply_steps: u32,
    /// Whom its finds bring within reach.
    pub brings: Vec<Role>,
}

/// One query of a robot.
#[derive(Debug, Clone)]
pub struct Step {
    pub query: Name,
    /// Queries that tell the same, the cheapest for each subject first; none is cheaper than
    /// `query`.
    pub or: Vec<Name>,
    /// The direction of follow relations that it walks; a crawl may leave one out.
    pub list: Option<List>,
    /// What may be asked in place of a first walk.
    pub backfill: Option<Backfill>,
}

/// A query that tells all of a list at once.
#[derive(Debug, Clone)]
pub struct Backfill {
    pub query: Name,
    /// The column of the subject that says how long the list is.
    pub count: Name,
}

impl Step {
    /// Every query that can do it.
    pub fn queries(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.query).chain(&self.or)
    }
}

impl Query {
    /// The query by which those are asked for one by one who are missing from an answer to a batch.
    pub fn missing_query(&self) -> Option<&Name> {
        self.batch.as_ref()?.missing.as_ref()
    }

    /// Whether a walk can be left and gone on with at any later time.
    pub fn is_durable(&self) -> bool {
        self.page.as_ref().is_none_or(|page| page.is_durable)
    }
}

/// Why a host cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("{network} has many hosts: name one, as in {network}@HOST")]
    Missing { network: Name },
    #[error("{network} has no host of its own, everything is asked for where it lives: name none")]
    None { network: Name },
    #[error("{host:?} is no host name: write for example `example.org` or `example.org:8443`")]
    Malformed { host: String },
}

impl Network {
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The day on which the definition was last held against the network, `YYYY-MM-DD`.
    pub fn verified_on(&self) -> &str {
        &self.verified_on
    }

    /// How far it is proved; nothing is claimed when it does not say.
    pub fn proved(&self) -> Option<Proved> {
        self.proved
    }

    /// Against what it is proved, in a sentence.
    pub fn proof(&self) -> Option<&str> {
        self.proof.as_deref()
    }

    /// What one needs to be answered, in a sentence.
    pub fn access(&self) -> Option<&str> {
        self.access.as_deref()
    }

    /// Where its facts come from.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The first 16 hexadecimal digits of the SHA-256 of the text.
    pub fn digest(&self) -> &Name {
        &self.digest
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn query(&self, name: &str) -> Option<&Query> {
        self.queries.iter().find(|query| &*query.name == name)
    }

    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.queries.iter()
    }

    pub fn robot(&self, name: &str) -> Option<&Robot> {
        self.robots.iter().find(|robot| &*robot.name == name)
    }

    /// Whether answers to a query describe objects of a type.
    pub fn finds(&self, query: &Query, kind: &str) -> bool {
        let mut selects = query.selects.iter();
        selects.any(|select| &*self.shapes[select.shape].kind == kind)
    }

    /// What a robot finds out of its subjects, if that is all that it is for: their table, and the
    /// groups of fields. Any other answer that tells them saves the visit.
    pub fn described_by(&self, robot: &Robot) -> Option<(Table, Vec<Name>)> {
        let [step] = robot.steps.as_slice() else {
            return None;
        };
        let query = self.query(&step.query)?;
        let [select] = query.selects.as_slice() else {
            return None;
        };
        if query.pages_max > 1 || !select.is_subject {
            return None;
        }
        let shape = &self.shapes[select.shape];
        let groups = shape.groups.iter().map(|group| group.name.clone());
        Some((shape.table, groups.collect()))
    }

    /// Whether a robot collects posts or comments, whoever's they are, so that there are times to learn from.
    /// What is only looked at again brings none.
    pub fn is_told_times(&self, robot: &Robot) -> bool {
        let mut queries = robot.steps.iter().filter_map(|it| self.query(&it.query));
        queries.any(|query| {
            let mut selects = query.selects.iter().filter(|select| !select.is_subject);
            selects.any(|select| {
                matches!(
                    self.shapes[select.shape].table,
                    Table::Statuses | Table::Comments
                )
            })
        })
    }

    /// Whether a robot visits people for what they write, so that it can be told how.
    pub fn follows_writers(&self, robot: &Robot) -> bool {
        let is_of = |kind: &Name, table: Table| {
            let mut shapes = self.shapes.iter();
            shapes.any(|shape| shape.kind == *kind && shape.table == table)
        };
        let finds_posts = |query: &Query| {
            let mut selects = query.selects.iter();
            selects.any(|select| self.shapes[select.shape].table == Table::Statuses)
        };
        let mut queries = robot.steps.iter().filter_map(|it| self.query(&it.query));
        is_of(&robot.kind, Table::Users) && queries.any(finds_posts)
    }

    pub fn robots(&self) -> &[Robot] {
        &self.robots
    }

    pub fn budget(&self, name: &str) -> Option<&BudgetRule> {
        self.budgets.iter().find(|budget| &*budget.name == name)
    }

    pub fn budgets(&self) -> &[BudgetRule] {
        &self.budgets
    }

    /// How quickly hosts are asked beside what budgets allow: as the definition says or, where it
    /// declares no budgets at all, as one asks strangers.
    pub fn politeness(&self) -> Option<Politeness> {
        let usual = self.budgets.is_empty().then(Politeness::default);
        self.politeness.or(usual)
    }

    /// The names of all types.
    pub fn kinds(&self) -> impl Iterator<Item = &Name> {
        self.types.iter().map(|one| &one.name)
    }

    /// The queries that tell further ids of an object of this type.
    pub fn resolve_queries(&self, kind: &str) -> impl Iterator<Item = &Query> {
        let names = self.find_type(kind).into_iter().flat_map(|it| &it.resolve);
        names.filter_map(|name| self.query(name))
    }

    /// Whether a query tells an id of its subject: an alias by its name, or the canonical one.
    pub fn tells(&self, query: &Query, id: &str) -> bool {
        let mut selects = query.selects.iter().filter(|select| select.is_subject);
        selects.any(|select| {
            let shape = &self.shapes[select.shape];
            if id == CANONICAL {
                return shape.canonical.is_some();
            }
            shape.aliases.iter().any(|alias| &*alias.name == id)
        })
    }

    /// Further hosts, by name, with their addresses.
    pub fn named_hosts(&self) -> &[(Name, Url)] {
        &self.hosts
    }

    /// Whether a further host takes the network's credential.
    pub fn takes_credential(&self, host: &str) -> bool {
        self.own_hosts.iter().any(|name| **name == *host)
    }

    /// Hosts that a crawl asks besides its own, unless it is told otherwise, as patterns.
    pub fn other_hosts(&self) -> &[String] {
        &self.others
    }

    /// How the network is asked by somebody it knows.
    pub fn auth(&self) -> &Auth {
        &self.auth
    }

    /// The headers in which servers say what is left: limit, remaining and reset.
    pub fn limit_header_names(&self) -> Option<[&str; 3]> {
        let headers = self.limit_headers.as_ref()?;
        let (reset, _) = headers.reset.as_ref()?;
        Some([
            headers.limit.as_deref()?,
            headers.remaining.as_deref()?,
            reset,
        ])
    }

    /// What a call with a credential is charged, if it is none of the queries.
    pub fn costs_of_other_calls(&self) -> Vec<Cost> {
        let budgets = self.budgets.iter().zip(&self.conditions);
        let applying = budgets.filter(|(rule, condition)| {
            condition.authenticated != Some(false)
                && condition.any_parameter.is_empty()
                && !matches!(rule.unit, Unit::Money(_))
        });
        applying
            .map(|(rule, _)| Cost {
                budget: rule.name.clone(),
                call: 1,
                item: 0,
                beside: 0,
                items_max: 0,
            })
            .collect()
    }

    /// What a program calls itself, where the network has a rule for it.
    pub fn user_agent(&self, version: &str, contact: &str, platform: &str) -> Option<String> {
        let template = self.user_agent.as_ref()?;
        Some(
            template
                .replace("{version}", version)
                .replace("{platform}", platform)
                .replace("{contact}", contact),
        )
    }

    /// The least permissions that some robots need: those of their queries, and of the queries
    /// that find their subjects.
    pub fn scopes_of(&self, robots: &[Name]) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        let chosen = self.robots.iter().filter(|it| robots.contains(&it.name));
        for robot in chosen {
            let steps = robot.steps.iter().flat_map(Step::queries);
            let steps = steps.filter_map(|name| self.query(name));
            for query in steps.chain(self.resolve_queries(&robot.kind)) {
                let scope = query.scope.iter().filter(|_| query.auth != AuthNeed::None);
                scopes.extend(scope.cloned());
            }
        }
        scopes.sort();
        scopes.dedup();
        scopes
    }

    /// Whether a robot sends a credential, where there is one.
    pub fn sends_credential(&self, robot: &str) -> bool {
        let steps = self.robot(robot).into_iter().flat_map(|it| &it.steps);
        let names = steps.flat_map(Step::queries);
        let mut queries = names.filter_map(|name| self.query(name));
        queries.any(|query| query.auth != AuthNeed::None)
    }

    /// Whether the user has to name a host.
    pub fn needs_host(&self) -> bool {
        self.host == HostRule::Instance
    }

    /// Whether it has no host of its own: every subject is asked for where it lives.
    pub fn asks_subjects(&self) -> bool {
        self.host == HostRule::Subject
    }

    /// The address that requests to a host begin with.
    pub fn base(&self, host: &str) -> Result<Url, HostError> {
        let malformed = || HostError::Malformed {
            host: host.chars().take(80).collect(),
        };
        let network = self.name.clone();
        match (&self.host, host) {
            (HostRule::Fixed(address), _) => return Ok(address.clone()),
            (HostRule::Subject, "") => return Url::parse(NOWHERE).map_err(|_| malformed()),
            (HostRule::Subject, _) => return Err(HostError::None { network }),
            (HostRule::Instance, "") => return Err(HostError::Missing { network }),
            (HostRule::Instance, _) => {}
        }
        if !is_host(host) {
            return Err(malformed());
        }
        let url = Url::parse(&format!("https://{host}")).map_err(|_| malformed())?;
        url.host_str().ok_or_else(malformed)?;
        Ok(url)
    }

    /// The host itself as a subject, if the definition makes it one: its id is how it is called.
    pub fn host_identity(&self, host: &str) -> Option<Identity> {
        let kind = self.host_kind.clone()?;
        Some(Identity {
            network: self.name.clone(),
            kind,
            canonical: Some(host.to_owned()),
            aliases: Vec::new(),
        })
    }

    pub(crate) fn find_type(&self, kind: &str) -> Option<&Type> {
        self.types.iter().find(|one| &*one.name == kind)
    }
}

/// Whether a text can be a host, perhaps with a port: nothing that would reach further into an
/// address.
pub(crate) fn is_host(text: &str) -> bool {
    const HOST_MAX: usize = 260;
    let is_plain = |character: char| {
        character.is_alphanumeric() || matches!(character, '.' | '-' | ':' | '[' | ']' | '_')
    };
    !text.is_empty() && text.len() <= HOST_MAX && text.chars().all(is_plain)
}
