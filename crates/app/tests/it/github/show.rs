//! Accounts, repositories, issues and comments as GitHub writes them.

use crate::github::world::{Account, Comment, Issue, Repo, World};
use serde_json::{Value, json};

pub(crate) fn merge(body: &mut Value, more: Value) {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
}

pub(crate) fn card(account: &Account, base: &str) -> Value {
    let url = format!("{base}/users/{}", account.login);
    json!({
        "login": account.login, "id": account.id, "node_id": format!("U_{}", account.id),
        "avatar_url": format!("https://avatars.example/{}", account.id), "gravatar_id": "", "url": url,
        "html_url": format!("https://github.com/{}", account.login),
        "followers_url": format!("{url}/followers"), "following_url": format!("{url}/following{{/other_user}}"),
        "type": account.kind, "site_admin": false, "user_view_type": "public",
    })
}

pub(crate) fn card_of(world: &World, account: Option<u64>, base: &str) -> Value {
    let account = account.and_then(|id| world.by_id(&id.to_string()));
    account.map_or(Value::Null, |account| card(account, base))
}

pub(crate) fn minimal(world: &World, repo: &Repo, base: &str) -> Value {
    let full_name = world.full_name(repo);
    json!({
        "id": repo.id, "node_id": "R", "name": repo.name, "full_name": full_name, "private": false,
        "owner": card_of(world, Some(repo.owner), base), "html_url": format!("https://github.com/{full_name}"),
        "description": repo.description, "fork": false, "url": format!("{base}/repos/{full_name}"),
        "homepage": null, "language": "Rust", "license": null, "topics": repo.topics,
        "stargazers_count": world.stars_of(repo.id), "forks_count": 0, "open_issues_count": 0, "size": 3,
        "default_branch": "main", "visibility": "public", "has_issues": repo.has_issues, "archived": false,
        "created_at": "2019-01-05T09:00:00Z", "updated_at": "2026-11-10T12:00:00Z", "pushed_at": "2026-11-09T00:00:00Z",
    })
}

pub(crate) fn reactions(likes: u64) -> Value {
    json!({ "url": "", "total_count": likes, "+1": likes, "-1": 0, "laugh": 0, "hooray": 0, "confused": 0,
            "heart": 0, "rocket": 0, "eyes": 0 })
}

pub(crate) fn issue(world: &World, issue: &Issue, base: &str) -> Value {
    let full_name = world.full_name_of(issue.repo);
    let url = format!("{base}/repos/{full_name}/issues/{}", issue.number);
    let page = if issue.is_pull { "pull" } else { "issues" };
    let labels = issue.labels.iter();
    let labels: Vec<Value> = labels
        .map(|name| json!({ "id": 1, "node_id": "L", "url": "", "name": name, "color": "f00", "default": false, "description": null }))
        .collect();
    let assignees: Vec<Value> = issue
        .assignees
        .iter()
        .map(|id| card_of(world, Some(*id), base))
        .collect();
    let mut body = json!({
        "id": issue.id, "node_id": "I", "url": url, "repository_url": format!("{base}/repos/{full_name}"),
        "labels_url": format!("{url}/labels{{/name}}"), "comments_url": format!("{url}/comments"),
        "events_url": format!("{url}/events"), "timeline_url": format!("{url}/timeline"),
        "html_url": format!("https://github.com/{full_name}/{page}/{}", issue.number),
        "number": issue.number, "state": "open", "state_reason": null, "title": issue.title, "body": issue.body,
        "user": card_of(world, issue.author, base), "labels": labels, "assignee": assignees.first(),
        "assignees": assignees, "milestone": null, "locked": false, "active_lock_reason": null,
        "comments": world.comments_of(issue.id).len(), "closed_at": null, "created_at": issue.created,
        "updated_at": issue.updated, "author_association": "NONE", "reactions": reactions(issue.likes),
        "performed_via_github_app": null,
    });
    if issue.is_pull {
        merge(
            &mut body,
            json!({ "draft": false, "pull_request": { "url": "", "merged_at": issue.updated } }),
        );
    }
    body
}

pub(crate) fn comment(world: &World, comment: &Comment, base: &str) -> Value {
    let issue = world.issues.iter().find(|issue| issue.id == comment.issue);
    let (repo, number) = issue.map_or((0, 0), |issue| (issue.repo, issue.number));
    let full_name = world.full_name_of(repo);
    json!({
        "id": comment.id, "node_id": "IC", "url": format!("{base}/repos/{full_name}/issues/comments/{}", comment.id),
        "html_url": format!("https://github.com/{full_name}/issues/{number}#issuecomment-{}", comment.id),
        "issue_url": format!("{base}/repos/{full_name}/issues/{number}"), "body": comment.text,
        "user": card_of(world, comment.author, base), "created_at": "2026-10-01T08:00:00Z",
        "updated_at": "2026-10-01T08:00:00Z", "author_association": "NONE", "reactions": reactions(0),
        "performed_via_github_app": null,
    })
}
