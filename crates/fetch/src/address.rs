//! Which addresses are public, and which hosts are this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Whether an address belongs to the public internet. In doubt it does not: a host learnt from an
/// answer must not reach the machine itself, its neighbours or a cloud's metadata service.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether the URL's host is this machine by its very name: a literal loopback address (in any
/// spelling, the parser normalises them), `localhost` or a name below it.
pub fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => is_localhost(name),
        None => false,
    }
}

/// Whether a name is this machine's: `localhost` and all names below it, which no name server is asked
/// for (RFC 6761).
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// The address in a URL whose host is written as one. Such a host is never looked up, so the check
/// of resolved addresses does not see it.
pub(crate) fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private, loopback; multicast, reserved, broadcast.
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]                   // carrier-grade NAT
            | [169, 254, ..]                        // link-local, cloud metadata services
            | [172, 16..=31, ..]                    // private
            | [192, 0, 0 | 2, _]                    // protocol assignments, documentation
            | [192, 88, 99, _]                      // retired 6to4 relays
            | [192, 168, ..]                        // private
            | [198, 18 | 19, ..]                    // benchmarking
            | [198, 51, 100, _] | [203, 0, 113, _] // documentation
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IPv4-mapped, NAT64 and 6to4: the kernel or a translator dials the IPv4 address. NAT64's
        // local-use sibling 64:ff9b:1::/48 falls to the last arm.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => is_public_v4(embedded_v4(high, low)),
        // Teredo: the server's address, and the client's with every bit turned over.
        [
            0x2001,
            0,
            server_high,
            server_low,
            _,
            _,
            client_high,
            client_low,
        ] => {
            is_public_v4(embedded_v4(server_high, server_low))
                && is_public_v4(embedded_v4(!client_high, !client_low))
        }
        // Protocol assignments 2001::/23 and documentation.
        [0x2001, 0x0000..=0x01ff | 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => false,
        // All that is handed out as global unicast. Loopback, unspecified, IPv4-compatible, unique
        // local, link-local, site-local, multicast and whatever comes later lie outside.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

fn embedded_v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::200e",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:200::1",
            "2001:0:808:808:0:0:f7f7:f7f7",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn all_other_addresses_are_not() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:0:808:808:0:0:80ff:fffe",
            "2001:0:7f00:1:0:0:f7f7:f7f7",
            "2001:db8::1",
            "2001:1ff::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn loopback_hosts_are_found_in_every_spelling() {
        for url in [
            "http://127.0.0.1:3000/",
            "http://127.8.9.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost:80/",
            "http://LOCALHOST./",
        ] {
            assert!(is_loopback_host(&Url::parse(url).unwrap()), "{url}");
        }
        for url in [
            "http://localhost.example/",
            "http://128.0.0.1/",
            "http://0.0.0.0/",
            "http://[::]/",
            "mailto:me@localhost",
        ] {
            assert!(!is_loopback_host(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
