//! A person allows it in a browser: a code comes back, and is redeemed for tokens.

use super::{Login, Told, loopback::Loopback};
use crate::failure::{Failure, code as exit};
use crate::{console, machine};
use kittiwake_fetch::Secret;
use kittiwake_network::auth::{
    Authorization, CodeFlow, Grant, Issued, MissingSecret, Pkce, Redirected, Secrets,
    TokenEndpoint, read_redirect, secret_names,
};

impl Login<'_> {
    pub(super) async fn with_code(
        &self,
        flow: &CodeFlow,
        asked: Secrets,
    ) -> Result<(Secrets, Issued), Failure> {
        let loopback = if self.paste {
            None
        } else {
            Some(Loopback::bind(self.port, self.earlier_port()).await?)
        };
        let redirect = match (&loopback, &flow.paste_redirect, self.port) {
            (Some(loopback), ..) => loopback.redirect(),
            (None, Some(shown), _) => shown.clone(),
            (None, None, port) => Loopback::redirect_to(port.unwrap_or_default()),
        };
        let client = self
            .client(
                asked,
                flow.register.as_ref(),
                std::slice::from_ref(&redirect),
            )
            .await?;
        let client_id = client
            .get(secret_names::CLIENT_ID)
            .ok_or(MissingSecret(secret_names::CLIENT_ID))
            .map_err(|missing| Failure::usage(missing.to_string()))?;
        let (state, pkce) = (machine::random_word(), Pkce::new(&machine::random()));
        let address = flow.address(
            &self.place.base,
            &Authorization {
                client_id,
                redirect: &redirect,
                scopes: &self.scopes,
                state: &state,
                pkce: &pkce,
            },
        );
        self.person.tell(Told::Open(address.to_string()));
        let is_shown = flow.paste_redirect.is_some();
        let redirected = match loopback {
            Some(loopback) => tokio::select! {
                redirected = loopback.wait(&state) => redirected?,
                copied = self.person.copied() => read_copied(&copied, &state, is_shown),
            },
            None => pasted(&state, is_shown)?,
        };
        let code = code_of(redirected)?;
        let grant = Grant::Code {
            code: &code,
            redirect: &redirect,
            verifier: &pkce.verifier,
        };
        let call = flow.token.call(&self.place.base, &client, &grant);
        let mut sent = client.clone();
        sent.insert("code".to_owned(), code.clone());
        sent.insert("code_verifier".to_owned(), pkce.verifier.clone());
        let issued = self.exchange(call, &sent, TokenEndpoint::read).await?;
        Ok((client, issued))
    }

    /// The port of an application that registered itself before: only with the same redirect can
    /// it be used again.
    fn earlier_port(&self) -> Option<u16> {
        let applications = self.vault.read().ok()?.applications;
        let own = applications.iter().find(|known| self.is_own(known))?;
        let redirect = own.redirects.first()?;
        url::Url::parse(redirect).ok()?.port()
    }
}

/// What a person copied: the code that a page showed, or the address that the browser ended at.
fn pasted(state: &str, is_shown: bool) -> Result<Redirected, Failure> {
    let what = if is_shown {
        "paste the code: "
    } else {
        "the browser ends at an address that it cannot open; paste that address: "
    };
    let copied = console::ask_secret(what)?;
    Ok(read_copied(&copied, state, is_shown))
}

fn read_copied(copied: &Secret, state: &str, is_shown: bool) -> Redirected {
    let text = copied.expose_secret().trim();
    if let Some((_, query)) = text.split_once('?') {
        let query = query.split('#').next().unwrap_or_default();
        return read_redirect(query, state);
    }
    // Without its address a code cannot be told from somebody else's, unless the page shows it.
    let is_code = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_shown && is_code {
        Redirected::Code(Secret::new(text))
    } else {
        Redirected::Nothing
    }
}

fn code_of(redirected: Redirected) -> Result<Secret, Failure> {
    let refused = |message: String| Failure {
        message,
        code: exit::AUTHENTICATION,
    };
    match redirected {
        Redirected::Code(code) => Ok(code),
        Redirected::Refused { code, detail } => Err(refused(format!(
            "the log-in was refused ({code}{}{detail}); no credential was stored",
            if detail.is_empty() { "" } else { ": " }
        ))),
        Redirected::WrongState => Err(refused(
            "what came back belongs to another log-in (its state is not ours), and was not used; \
             begin again: no credential was stored"
                .to_owned(),
        )),
        Redirected::Nothing => Err(refused(
            "no code came back; begin again: no credential was stored".to_owned(),
        )),
    }
}
