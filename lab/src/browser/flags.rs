//! The browser's command line and preferences: one page, no request that is not the page's.
//!
//! The rules of [`super::vendor`] hold back the browser's own requests on all versions. Switches and features are a second
//! layer: they spare the work, and apply to hosts that the page shares with the browser.
//!
//! Source: <https://peter.sh/experiments/chromium-command-line-switches/>, and Chromium's lists of features.

use std::ffi::OsString;
use std::path::Path;

use super::options::Options;
use super::vendor::PageHosts;

/// Arguments of the browser.
pub(super) fn arguments(
    options: &Options,
    hosts: &PageHosts,
    profile: &Path,
    is_root: bool,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
    let mut add = |flag: &str| all.push(flag.into());
    add(&format!("--disable-features={}", FEATURES_OFF.join(",")));
    add(&format!("--host-resolver-rules={}", hosts.resolver_rules()));
    if is_root {
        // Chromium refuses to run its sandbox as root.
        add("--no-sandbox");
    }
    if options.insecure {
        add("--ignore-certificate-errors");
    }
    if !options.http2 {
        add("--disable-http2");
    }
    let mut add_path = |flag: &str, path: &Path| {
        let mut flag = OsString::from(flag);
        flag.push(path);
        all.push(flag);
    };
    add_path("--user-data-dir=", profile);
    if let Some(key_log) = &options.key_log {
        // The browser runs in its own directory, so the path must be absolute. If that fails, the path is invalid
        // anyway.
        let absolute = std::path::absolute(key_log);
        add_path("--ssl-key-log-file=", absolute.as_ref().unwrap_or(key_log));
    }
    all.push(EMPTY_PAGE.into());
    all
}

/// The preferences of a new profile, JSON. Prediction is 2, "never": neither predictions nor the page's hints open a connection.
pub(super) const PREFERENCES: &str = "{\"net\":{\"network_prediction_options\":2}}";

/// The page that a browser begins with.
pub(super) const EMPTY_PAGE: &str = "about:blank";

const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    // Requests of its own.
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-search-engine-choice-screen",
    // A browser uses QUIC only with a server that it knows already.
    "--disable-quic",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--no-proxy-server",
    "--no-service-autorun",
    // Services without a switch get a URL on a port that browsers refuse.
    "--component-updater=url-source=http://127.0.0.1:9/",
    "--gaia-url=http://127.0.0.1:9",
    "--gcm-checkin-url=http://127.0.0.1:9/",
    "--gcm-mcs-endpoint=http://127.0.0.1:9/",
    "--gcm-registration-url=http://127.0.0.1:9/",
    // Extra programs and files.
    "--disable-breakpad",
    "--password-store=basic",
    // GPUs differ from machine to machine. Without one, the search for it takes time.
    "--disable-gpu",
    // Shared memory of containers is small; without it the browser uses files.
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,800",
    "--mute-audio",
    // Chromium slows down pages in the background.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-ipc-flooding-protection",
];

/// Features that make requests of their own, ask for another URL than was typed, or hide when data arrived.
const FEATURES_OFF: &[&str] = &[
    "AimEnabled",
    "AimServerEligibilityEnabled",
    "AimServerRequestOnStartupEnabled",
    "AutofillServerCommunication",
    // It would deliver scripts to the page in one piece, hiding when their parts arrived.
    "BackgroundResourceFetch",
    "CertificateTransparencyComponentUpdater",
    "DnsOverHttps",
    "GlobalMediaControls",
    "HttpsFirstBalancedMode",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "Translate",
    // Pages of the browser's own window, which load beside the page.
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxPopup",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_follow_the_options() {
        let mut options = Options::new("http://h/");
        let line = |options: &Options, is_root| {
            let hosts = PageHosts::of(&options.url);
            let all = arguments(options, &hosts, Path::new("/p"), is_root).join(" ".as_ref());
            all.to_string_lossy().into_owned()
        };
        let usual = line(&options, false);
        assert!(
            usual.contains("--user-data-dir=/p ") && usual.ends_with(" about:blank"),
            "{usual}"
        );
        assert!(usual.contains(" --host-resolver-rules=MAP chrome.com ~NOTFOUND,"));
        assert!(!usual.contains("--disable-http2"));
        assert!(!usual.contains("--no-sandbox") && !usual.contains("--ignore-certificate-errors"));
        assert!(line(&options, true).contains("--no-sandbox"));
        (options.http2, options.insecure) = (false, true);
        options.key_log = Some("/k".into());
        let other = line(&options, false);
        for flag in ["--disable-http2", "--ignore-certificate-errors", "-file=/k"] {
            assert!(other.contains(flag), "{other}");
        }
        options.key_log = Some("k".into());
        let here = std::env::current_dir().expect("a directory").join("k");
        let flag = format!("-file={}", here.display());
        assert!(line(&options, false).contains(&flag), "{flag}");
    }
}
