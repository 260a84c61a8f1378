//! `*_cache_path`: the parameters of a cache, as written.
//!
//! Absent: checks against other caches, which are in [`declared`](super::declared).
//!
//! Source: nginx documentation, `proxy_cache_path`; errors are nginx's, defaults too.

use conf::{ConfError, Directive, Word};
use server_cache::names::Levels;
use server_cache::pace::Pace;

/// Parameters of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePath {
    /// Its directory, without a slash at the end.
    pub path: Vec<u8>,
    /// `levels`.
    pub levels: Levels,
    /// The name in `keys_zone`.
    pub name: Vec<u8>,
    /// The size in `keys_zone`, bytes.
    pub zone_bytes: u64,
    /// `use_temp_path`.
    pub uses_temp_path: bool,
    /// Limits of the stored files.
    pub limits: CacheLimits,
    /// `loader_files`, `loader_sleep`, `loader_threshold`.
    pub loader: Pace,
    /// `manager_files`, `manager_sleep`, `manager_threshold`.
    pub manager: Pace,
    /// `purger_files`, `purger_sleep`, `purger_threshold`.
    pub purger: Pace,
}

/// Limits of the stored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// `inactive`, seconds.
    pub inactive_s: u32,
    /// `max_size`, bytes; `None`: no limit.
    pub max_bytes: Option<u64>,
    /// `min_free`, bytes.
    pub min_free_bytes: u64,
    /// `memory`, bytes: copies of small files; 0: none.
    pub memory_bytes: u64,
}

/// Syntax after the name, as the reference shows it.
pub const SYNTAX: &str = "path [levels=levels] [use_temp_path=on|off] keys_zone=name:size [inactive=time] [max_size=size] [min_free=size] [manager_files=number] [manager_sleep=time] [manager_threshold=time] [loader_files=number] [loader_sleep=time] [loader_threshold=time] [purger=on|off] [purger_files=number] [purger_sleep=time] [purger_threshold=time] [memory=size]";

/// The smallest `keys_zone`, bytes: nginx's two pages of 4 KiB.
pub const ZONE_MIN_BYTES: usize = 2 * 4096;

/// The defaults of the purger.
const PURGER_PACE: Pace = Pace {
    files: 10,
    sleep_ms: 50,
    threshold_ms: 50,
};

impl CachePath {
    /// Parses the directive. `full_path` resolves a path against the prefix.
    ///
    /// # Errors
    /// Those of nginx: `invalid parameter`, `invalid keys zone size`, and one for each parameter.
    pub fn parse(d: &Directive, full_path: impl Fn(&[u8]) -> Vec<u8>) -> Result<Self, ConfError> {
        let path = d.arg(0);
        let mut parsed = Self {
            path: full_path(path.strip_suffix(b"/").unwrap_or(path)),
            levels: Levels::default(),
            name: Vec::new(),
            zone_bytes: 0,
            uses_temp_path: true,
            limits: CacheLimits {
                inactive_s: 600,
                max_bytes: None,
                min_free_bytes: 0,
                memory_bytes: 0,
            },
            loader: Pace::default(),
            manager: Pace::default(),
            purger: PURGER_PACE,
        };
        for word in &d.args[1..] {
            parsed.parameter(d, word)?;
        }
        if parsed.name.is_empty() || parsed.zone_bytes == 0 {
            let text = format!("\"{}\" must have \"keys_zone\" parameter", d.name());
            return Err(ConfError::at(d, text));
        }
        Ok(parsed)
    }

    /// Parses a parameter.
    fn parameter(&mut self, d: &Directive, word: &Word) -> Result<(), ConfError> {
        let unknown = || ConfError::parameter(d, word);
        let equals = memchr::memchr(b'=', &word.text).ok_or_else(unknown)?;
        let (name, value) = (&word.text[..equals], &word.text[equals + 1..]);
        let shown = word.as_str();
        let error = |text: String| ConfError::word(d, word, text);
        let invalid = |name: &str| error(format!("invalid {name} value \"{shown}\""));
        match name {
            b"levels" => {
                // nginx takes an empty value for no levels.
                let levels = match value {
                    b"" => Some(Levels::default()),
                    value => Levels::parse(value),
                };
                let text = || error(format!("invalid \"levels\" \"{shown}\""));
                self.levels = levels.ok_or_else(text)?;
            }
            b"use_temp_path" => {
                self.uses_temp_path = switch("use_temp_path", value, &error, shown)?
            }
            // Purges are carried out in any case: the purger rests without them.
            b"purger" => {
                switch("purger", value, &error, shown)?;
            }
            b"keys_zone" => {
                let size = || error(format!("invalid keys zone size \"{shown}\""));
                let colon = memchr::memchr(b':', value).ok_or_else(size)?;
                let bytes = conf::parse_size(&value[colon + 1..]).ok_or_else(size)?;
                if bytes < ZONE_MIN_BYTES {
                    return Err(error(format!("keys zone \"{shown}\" is too small")));
                }
                self.name = value[..colon].to_vec();
                self.zone_bytes = bytes as u64;
            }
            b"inactive" => {
                let seconds = conf::parse_time_s(value).ok_or_else(|| invalid("inactive"))?;
                self.limits.inactive_s = u32::try_from(seconds).unwrap_or(u32::MAX);
            }
            b"max_size" => {
                let bytes = conf::parse_offset(value).ok_or_else(|| invalid("max_size"))?;
                self.limits.max_bytes = Some(bytes);
            }
            b"min_free" => {
                let bytes = conf::parse_offset(value).ok_or_else(|| invalid("min_free"))?;
                self.limits.min_free_bytes = bytes;
            }
            b"memory" => {
                let bytes = conf::parse_offset(value).ok_or_else(|| invalid("memory"))?;
                self.limits.memory_bytes = bytes;
            }
            _ => {
                let name = str::from_utf8(name).map_err(|_| unknown())?;
                let (pace, bound) = self.pace(name).ok_or_else(unknown)?;
                set_bound(pace, bound, value).ok_or_else(|| invalid(name))?;
            }
        }
        Ok(())
    }

    /// Returns the pace and the bound that a parameter sets.
    fn pace<'n>(&mut self, name: &'n str) -> Option<(&mut Pace, &'n str)> {
        let (work, bound) = name.split_once('_')?;
        let pace = match work {
            "loader" => &mut self.loader,
            "manager" => &mut self.manager,
            "purger" => &mut self.purger,
            _ => return None,
        };
        matches!(bound, "files" | "sleep" | "threshold").then_some((pace, bound))
    }
}

/// Parses `on` or `off`, in lower case as in nginx.
fn switch(
    name: &str,
    value: &[u8],
    error: &dyn Fn(String) -> ConfError,
    shown: &str,
) -> Result<bool, ConfError> {
    match value {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(error(format!(
            "invalid {name} value \"{shown}\", it must be \"on\" or \"off\""
        ))),
    }
}

/// Sets a bound of a pace; `None` if the value is invalid.
fn set_bound(pace: &mut Pace, bound: &str, value: &[u8]) -> Option<()> {
    match bound {
        "files" => {
            let files = conf::parse_number(value)?;
            pace.files = u32::try_from(files).unwrap_or(u32::MAX);
        }
        "sleep" => pace.sleep_ms = conf::parse_time_ms(value)?,
        _ => pace.threshold_ms = conf::parse_time_ms(value)?,
    }
    Some(())
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
