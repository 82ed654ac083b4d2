//! A person allows it on another machine, with a short code.

use super::{Login, Told};
use crate::exchange::send;
use crate::failure::{Failure, code as exit};
use kittiwake_network::auth::{AuthError, DeviceFlow, Grant, Issued, Secrets, TokenEndpoint};
use std::time::{Duration, Instant};

/// What a server that is asked too often wants the pause to grow by (RFC 8628, section 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);

impl Login<'_> {
    pub(super) async fn with_device(
        &self,
        flow: &DeviceFlow,
        client: Secrets,
    ) -> Result<(Secrets, Issued), Failure> {
        let base = &self.place.base;
        let call = flow.call(base, &client, &self.scopes);
        let code = self.exchange(call, &client, DeviceFlow::read).await?;
        self.person.tell(Told::Enter {
            address: code.address.to_string(),
            code: code.user_code.clone(),
        });
        let mut pause = Duration::from_secs(code.interval_s);
        let expires = Instant::now() + Duration::from_secs(code.expires_in_s);
        let mut secrets = client.clone();
        secrets.insert("device_code".to_owned(), code.device_code.clone());
        loop {
            tokio::time::sleep(pause).await;
            if Instant::now() >= expires {
                return Err(Failure {
                    message: "nobody entered the code in time; begin again: no credential was \
                              stored"
                        .to_owned(),
                    code: exit::AUTHENTICATION,
                });
            }
            let grant = Grant::Device(&code.device_code);
            let call = flow.token.call(base, &client, &grant);
            let call = call.map_err(|error| super::failed(&error, &secrets))?;
            let answered = send(self.fetcher, &call).await;
            match answered.and_then(|(status, body)| TokenEndpoint::read(status, &body)) {
                Ok(issued) => return Ok((client, issued)),
                // A server that is out of reach for a moment is asked again, more slowly.
                Err(
                    AuthError::SlowDown | AuthError::Trouble { .. } | AuthError::Unreachable(_),
                ) => pause += SLOWER_BY,
                Err(AuthError::Pending) => {}
                Err(error) => return Err(super::failed(&error, &secrets)),
            }
        }
    }
}
