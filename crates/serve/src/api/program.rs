//! What the program does for those who ask: definitions, credentials, a question to the network itself.

use super::{Answer, Body, Known, Path};
use crate::Problem;
use crate::api::refusal::{Conflict, Forbidden, Invalid, Missing, NotJson, TooLarge, TooMany};
use crate::desk::{
    AppliedDefinition, CheckedDefinition, CredentialName, CredentialView, DefinitionText,
    DefinitionView, GivenSecret, LoginMethodView, LoginQuestion, LoginView, OnlineAnswer,
    OnlineQuestion,
};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A definition as it is written.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenDefinition {
    #[schema(max_length = 1_000_000)]
    text: String,
}

/// The definitions that there are: those of the program, and that of the crawl.
#[utoipa::path(get, path = "/api/definitions", tag = "program",
    responses((status = 200, body = Vec<DefinitionView>)))]
pub(crate) async fn definitions(State(shared): Known) -> Answer<Vec<DefinitionView>> {
    Ok(Json(shared.desk.definitions().await?))
}

/// A definition, whole.
#[utoipa::path(get, path = "/api/definitions/{name}", tag = "program",
    params(("name" = String, Path, max_length = 200)), responses(
    (status = 200, body = DefinitionText),
    Invalid, Missing))]
pub(crate) async fn definition(
    State(shared): Known,
    Path(name): Path<String>,
) -> Answer<DefinitionText> {
    Ok(Json(shared.desk.definition(name).await?))
}

/// Looks for mistakes in a definition; it changes nothing.
#[utoipa::path(post, path = "/api/definitions/check", tag = "program",
    request_body = GivenDefinition, responses(
    (status = 200, body = CheckedDefinition),
    Invalid, Forbidden, TooLarge, NotJson))]
pub(crate) async fn check_definition(
    State(shared): Known,
    Body(given): Body<GivenDefinition>,
) -> Answer<CheckedDefinition> {
    Ok(Json(shared.desk.check_definition(given.text).await?))
}

/// Gives the crawl that this process runs another definition of its network.
#[utoipa::path(put, path = "/api/definitions/{name}", tag = "program",
    params(("name" = String, Path, max_length = 200)), request_body = GivenDefinition, responses(
    (status = 200, body = AppliedDefinition),
    Invalid, Forbidden, Missing, Conflict, TooLarge, NotJson))]
pub(crate) async fn apply_definition(
    State(shared): Known,
    Path(name): Path<String>,
    Body(given): Body<GivenDefinition>,
) -> Answer<AppliedDefinition> {
    let applied = shared.desk.apply_definition(name, given.text).await?;
    shared.look_soon();
    Ok(Json(applied))
}

/// Who is logged in. Secrets go in and never come out.
#[utoipa::path(get, path = "/api/credentials", tag = "program", responses(
    (status = 200, body = Vec<CredentialView>),
    (status = 409, description = "the vault cannot be opened", body = Problem,
     content_type = "application/problem+json")))]
pub(crate) async fn credentials(State(shared): Known) -> Answer<Vec<CredentialView>> {
    Ok(Json(shared.desk.credentials().await?))
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    done: bool,
}

/// Takes a credential out of the vault.
#[utoipa::path(post, path = "/api/credentials/remove", tag = "program",
    request_body = CredentialName, responses(
    (status = 200, body = Done),
    Invalid, Forbidden, Missing, Conflict, NotJson))]
pub(crate) async fn remove_credential(
    State(shared): Known,
    Body(which): Body<CredentialName>,
) -> Answer<Done> {
    shared.desk.remove_credential(which).await?;
    Ok(Json(Done { done: true }))
}

/// The ways to log in to a network, and what each of them asks for.
#[utoipa::path(get, path = "/api/networks/{network}/logins", tag = "program",
    params(("network" = String, Path, max_length = 200)), responses(
    (status = 200, body = Vec<LoginMethodView>),
    Invalid, Missing))]
pub(crate) async fn login_methods(
    State(shared): Known,
    Path(network): Path<String>,
) -> Answer<Vec<LoginMethodView>> {
    Ok(Json(shared.desk.login_methods(network).await?))
}

/// Begins to log in to a network. What comes of it goes into the vault.
#[utoipa::path(post, path = "/api/logins", tag = "program", request_body = LoginQuestion, responses(
    (status = 200, body = LoginView),
    Invalid, Forbidden, Missing, Conflict, NotJson,
    (status = 424, description = "the network did not do its part", body = Problem,
     content_type = "application/problem+json"),
    TooMany))]
pub(crate) async fn begin_login(
    State(shared): Known,
    Body(question): Body<LoginQuestion>,
) -> Answer<LoginView> {
    Ok(Json(shared.desk.begin_login(question).await?))
}

/// How a log-in stands.
#[utoipa::path(get, path = "/api/logins/{id}", tag = "program",
    params(("id" = String, Path, max_length = 100)), responses(
    (status = 200, body = LoginView),
    Invalid, Missing))]
pub(crate) async fn login(State(shared): Known, Path(id): Path<String>) -> Answer<LoginView> {
    Ok(Json(shared.desk.login(id).await?))
}

/// What a person brought back from the network's page.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginAnswer {
    /// The code, or the address that the browser ended at.
    answer: GivenSecret,
}

/// Goes on with what a person brought back.
#[utoipa::path(post, path = "/api/logins/{id}", tag = "program",
    params(("id" = String, Path, max_length = 100)), request_body = LoginAnswer, responses(
    (status = 200, body = LoginView),
    Invalid, Forbidden, Missing, Conflict, NotJson))]
pub(crate) async fn finish_login(
    State(shared): Known,
    Path(id): Path<String>,
    Body(given): Body<LoginAnswer>,
) -> Answer<LoginView> {
    Ok(Json(shared.desk.finish_login(id, given.answer.0).await?))
}

/// Searches on the network itself. It costs a call, and others where a host has to be asked first what it can do;
/// they are granted by the ledger like any other, and the answer says how many they were. What is found is shown
/// and not stored.
#[utoipa::path(post, path = "/api/search/online", tag = "program", request_body = OnlineQuestion, responses(
    (status = 200, body = OnlineAnswer),
    Invalid, Forbidden,
    (status = 404, description = "the network has no search", body = Problem,
     content_type = "application/problem+json"),
    Conflict, NotJson,
    (status = 424, description = "the network did not do its part", body = Problem,
     content_type = "application/problem+json"),
    (status = 429, description = "a limit is used up", body = Problem,
     content_type = "application/problem+json")))]
pub(crate) async fn search_online(
    State(shared): Known,
    Body(question): Body<OnlineQuestion>,
) -> Answer<OnlineAnswer> {
    Ok(Json(shared.desk.search_online(question).await?))
}
