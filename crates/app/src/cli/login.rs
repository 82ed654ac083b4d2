//! `kittiwake login` and `kittiwake auth`.

use crate::vault::VaultKey;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// What opens the vault; every command takes it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct VaultArguments {
    /// A file whose first line is the passphrase of the vault.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Vault")]
    pub passphrase_file: Option<PathBuf>,

    /// A file with the key of the vault, an age identity (kittiwake auth key makes one).
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Vault", conflicts_with = "passphrase_file")]
    pub key_file: Option<PathBuf>,

    /// What opened the vault before, so that nobody is asked twice.
    #[arg(skip)]
    pub known: Option<VaultKey>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake login mastodon@mastodon.example
  kittiwake login mastodon@mastodon.example --robots profiles,relations --paste
  kittiwake login mastodon@mastodon.example --token < token.txt
  kittiwake login mastodon@mastodon.example --method app

The credential goes into the vault, $XDG_CONFIG_HOME/kittiwake/vault.age or
~/.config/kittiwake/vault.age, encrypted with a passphrase or a key; crawls find it there. Only the
permissions are asked for that the robots need. Secrets are typed in, or come from standard input, a
line each; never from the command line.")]
pub(crate) struct LoginArguments {
    /// A shipped network or the path of a definition, with the host: mastodon@HOST.
    #[arg(value_name = "NETWORK[@HOST]")]
    pub network: String,

    /// The way to log in, if the network has several; the first one by default.
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,

    /// Take a token that you have, from standard input or typed in.
    #[arg(long, conflicts_with = "method")]
    pub token: bool,

    /// Copy the code from the browser and paste it here, instead of waiting for the browser.
    #[arg(long)]
    pub paste: bool,

    /// The port on 127.0.0.1 that the browser comes back to, where the network wants it fixed
    /// [default: a free one].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// The robots that will use it, separated by commas; their permissions are asked for.
    #[arg(long, value_delimiter = ',', value_name = "ROBOTS")]
    pub robots: Vec<String>,

    /// Robots that will not.
    #[arg(long, value_delimiter = ',', value_name = "ROBOTS")]
    pub without: Vec<String>,

    /// A name for the credential [default: the account's].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The address to ask, instead of https://HOST.
    #[arg(long, value_name = "URL")]
    pub host: Option<String>,

    /// An address or a page by which the host's owner can reach you.
    #[arg(long, value_name = "CONTACT")]
    pub contact: Option<String>,

    /// Print what was stored as JSON, without secrets.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// List the credentials and URLs in the vault, without secrets.
    #[command(after_help = "Example:\n  kittiwake auth list --json")]
    List {
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask a host whether a credential works, what it may do, and what is left of its limits.
    Test(AuthTestArguments),
    /// Remove a credential from the vault.
    #[command(after_help = "\
Examples:
  kittiwake auth remove mastodon@mastodon.example
  kittiwake auth remove mastodon@mastodon.example --name alice")]
    Remove {
        /// The network and host as auth list names them.
        #[arg(value_name = "NETWORK[@HOST]")]
        network: String,
        /// The credential's name, if there are several.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Put a URL that holds a password into the vault, to be used as vault:NAME.
    #[command(after_help = "\
Examples:
  kittiwake auth url lab < url.txt
  kittiwake auth url lab --remove

Then: kittiwake crawl mastodon@mastodon.example alice --into vault:lab")]
    Url {
        /// The name that stands for it.
        #[arg(value_name = "NAME")]
        name: String,
        /// Take it out again.
        #[arg(long)]
        remove: bool,
    },
    /// Set the password of the dashboard and of the HTTP API.
    #[command(after_help = "\
Examples:
  kittiwake auth password
  kittiwake auth password --viewer < password.txt
  kittiwake auth password --viewer --remove

The operator does everything, a viewer looks and changes nothing. What is kept, in the vault, is a hash. A
server that runs takes notice when it is started again.")]
    Password {
        /// That of the viewer; the operator's otherwise.
        #[arg(long)]
        viewer: bool,
        /// Take it out again.
        #[arg(long)]
        remove: bool,
    },
    /// Make a key that opens the vault without a passphrase, for programs that run by themselves.
    #[command(after_help = "\
Example:
  kittiwake auth key ~/.config/kittiwake/vault.key

Give it to every command with --key-file, or what stands in it with KITTIWAKE_VAULT_KEY.")]
    Key {
        /// The file to make; only its owner may read it.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kittiwake auth test mastodon@mastodon.example
  kittiwake auth test mastodon@mastodon.example --json

One call is made, out of the same allowance as the calls of a crawl. Exit codes: 0 it works, 3 a
limit is used up, 4 it does not.")]
pub(crate) struct AuthTestArguments {
    /// A shipped network or the path of a definition, with the host: mastodon@HOST.
    #[arg(value_name = "NETWORK[@HOST]")]
    pub network: String,

    /// The credential's name, if there are several.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// The address to ask, instead of https://HOST.
    #[arg(long, value_name = "URL")]
    pub host: Option<String>,

    /// An address or a page by which the host's owner can reach you.
    #[arg(long, value_name = "CONTACT")]
    pub contact: Option<String>,

    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}
