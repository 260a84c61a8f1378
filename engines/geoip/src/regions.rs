//! Names of regions by the codes of MaxMind's older databases.
//!
//! The codes are those of FIPS PUB 10-4, but postal ones for the United States and Canada. Absent: MaxMind's own
//! spelling of names, and codes that FIPS 10-4 withdrew before its last change.
//!
//! Source: FIPS PUB 10-4, a work of the United States government, to its change notice 14. Diacritics are left out; of
//! names in two languages the English one is used, or the first. Moscow City as in nginx documentation,
//! `ngx_http_geoip_module`.

/// Lines of a country's code, a region's code, a space and a name, sorted.
const REGIONS: &str = include_str!("regions.txt");

/// Returns the name of a country's region.
pub fn name(country: &[u8], region: &[u8]) -> Option<&'static str> {
    let ([_, _], [_, _]) = (country, region) else {
        return None;
    };
    let key = [country, region].concat();
    let (mut low, mut high) = (0, REGIONS.len());
    while low < high {
        let middle = low + (high - low) / 2;
        // The line with the byte in the middle.
        let start = REGIONS.as_bytes()[..middle]
            .iter()
            .rposition(|b| *b == b'\n');
        let start = start.map_or(0, |at| at + 1);
        let line = REGIONS[start..].lines().next()?;
        let (found, name) = line.split_once(' ')?;
        match found.as_bytes().cmp(&key) {
            std::cmp::Ordering::Equal => return Some(name),
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_is_found() {
        let mut lines = 0;
        for line in REGIONS.lines() {
            let (code, expected) = line.split_at(4);
            let found = name(&code.as_bytes()[..2], &code.as_bytes()[2..]);
            assert_eq!(found, Some(&expected[1..]), "{line}");
            assert!(line.is_ascii() && expected.len() > 1, "{line}");
            lines += 1;
        }
        assert!(lines > 3900, "only {lines} regions");
        assert!(REGIONS.lines().is_sorted());
    }

    #[test]
    fn what_has_no_name_has_none() {
        assert_eq!(name(b"RU", b"48"), Some("Moscow City"));
        assert_eq!(name(b"US", b"DC"), Some("District of Columbia"));
        for (country, region) in [
            ("US", "00"),
            ("", ""),
            ("ZZ", "ZZ"),
            ("AA", "00"),
            ("RU", "4"),
            ("R", "U48"),
        ] {
            assert_eq!(
                name(country.as_bytes(), region.as_bytes()),
                None,
                "{country}{region}"
            );
        }
    }
}
