//! Countries of ISO 3166-1: two-letter codes, numbers and short English names.
//!
//! The table has the 249 codes of the standard, and `XK` for Kosovo, which databases use and the standard reserves for
//! its users. Names are the usual short ones, such as `Russia` for `Russian Federation`.
//!
//! Source: ISO 3166-1 for codes and numbers, compared with the packages iso-codes of Debian and pycountry.

/// Returns the short English name of a country by its code, two capitals; `None` if it is no country.
#[must_use]
pub fn name_of(code: [u8; 2]) -> Option<&'static str> {
    row(code).map(|row| row.2)
}

/// Returns the number of ISO 3166-1 by a code; `None` for no country and for `XK`.
#[must_use]
pub fn numeric_of(code: [u8; 2]) -> Option<u16> {
    row(code).map(|row| row.1).filter(|number| *number != 0)
}

/// Returns the code by a number of ISO 3166-1.
#[must_use]
pub fn code_of_numeric(number: u16) -> Option<[u8; 2]> {
    let row = COUNTRIES
        .iter()
        .find(|row| row.1 == number && number != 0)?;
    Some(row.0)
}

/// Returns the codes of all countries, in alphabetical order.
pub fn codes() -> impl Iterator<Item = [u8; 2]> {
    COUNTRIES.iter().map(|row| row.0)
}

/// Whether a code is a country's. Codes in databases such as `??`, `A1`, `EU`, `T1` and `ZZ` are not.
#[must_use]
pub fn is_country(code: [u8; 2]) -> bool {
    index(code).is_some_and(|at| KNOWN[at])
}

fn row(code: [u8; 2]) -> Option<&'static (Code, u16, &'static str)> {
    let at = COUNTRIES.binary_search_by_key(&code, |row| row.0).ok()?;
    Some(&COUNTRIES[at])
}

/// Returns the place of a code of two capitals among all of them.
const fn index(code: [u8; 2]) -> Option<usize> {
    let [a, b] = code;
    if a.is_ascii_uppercase() && b.is_ascii_uppercase() {
        Some((a - b'A') as usize * LETTERS + (b - b'A') as usize)
    } else {
        None
    }
}

/// Two capitals.
type Code = [u8; 2];

const LETTERS: usize = 26;

/// The codes of countries, by `index`: lookups of addresses test a code each.
static KNOWN: [bool; LETTERS * LETTERS] = {
    let mut known = [false; LETTERS * LETTERS];
    let mut n = 0;
    while n < COUNTRIES.len() {
        if let Some(at) = index(COUNTRIES[n].0) {
            known[at] = true;
        }
        n += 1;
    }
    known
};

/// Code, number or 0, name; sorted by code.
const COUNTRIES: &[(Code, u16, &str)] = &[
    (*b"AD", 20, "Andorra"),
    (*b"AE", 784, "United Arab Emirates"),
    (*b"AF", 4, "Afghanistan"),
    (*b"AG", 28, "Antigua and Barbuda"),
    (*b"AI", 660, "Anguilla"),
    (*b"AL", 8, "Albania"),
    (*b"AM", 51, "Armenia"),
    (*b"AO", 24, "Angola"),
    (*b"AQ", 10, "Antarctica"),
    (*b"AR", 32, "Argentina"),
    (*b"AS", 16, "American Samoa"),
    (*b"AT", 40, "Austria"),
    (*b"AU", 36, "Australia"),
    (*b"AW", 533, "Aruba"),
    (*b"AX", 248, "Åland Islands"),
    (*b"AZ", 31, "Azerbaijan"),
    (*b"BA", 70, "Bosnia and Herzegovina"),
    (*b"BB", 52, "Barbados"),
    (*b"BD", 50, "Bangladesh"),
    (*b"BE", 56, "Belgium"),
    (*b"BF", 854, "Burkina Faso"),
    (*b"BG", 100, "Bulgaria"),
    (*b"BH", 48, "Bahrain"),
    (*b"BI", 108, "Burundi"),
    (*b"BJ", 204, "Benin"),
    (*b"BL", 652, "Saint Barthélemy"),
    (*b"BM", 60, "Bermuda"),
    (*b"BN", 96, "Brunei"),
    (*b"BO", 68, "Bolivia"),
    (*b"BQ", 535, "Caribbean Netherlands"),
    (*b"BR", 76, "Brazil"),
    (*b"BS", 44, "Bahamas"),
    (*b"BT", 64, "Bhutan"),
    (*b"BV", 74, "Bouvet Island"),
    (*b"BW", 72, "Botswana"),
    (*b"BY", 112, "Belarus"),
    (*b"BZ", 84, "Belize"),
    (*b"CA", 124, "Canada"),
    (*b"CC", 166, "Cocos Islands"),
    (*b"CD", 180, "Democratic Republic of the Congo"),
    (*b"CF", 140, "Central African Republic"),
    (*b"CG", 178, "Republic of the Congo"),
    (*b"CH", 756, "Switzerland"),
    (*b"CI", 384, "Côte d'Ivoire"),
    (*b"CK", 184, "Cook Islands"),
    (*b"CL", 152, "Chile"),
    (*b"CM", 120, "Cameroon"),
    (*b"CN", 156, "China"),
    (*b"CO", 170, "Colombia"),
    (*b"CR", 188, "Costa Rica"),
    (*b"CU", 192, "Cuba"),
    (*b"CV", 132, "Cabo Verde"),
    (*b"CW", 531, "Curaçao"),
    (*b"CX", 162, "Christmas Island"),
    (*b"CY", 196, "Cyprus"),
    (*b"CZ", 203, "Czechia"),
    (*b"DE", 276, "Germany"),
    (*b"DJ", 262, "Djibouti"),
    (*b"DK", 208, "Denmark"),
    (*b"DM", 212, "Dominica"),
    (*b"DO", 214, "Dominican Republic"),
    (*b"DZ", 12, "Algeria"),
    (*b"EC", 218, "Ecuador"),
    (*b"EE", 233, "Estonia"),
    (*b"EG", 818, "Egypt"),
    (*b"EH", 732, "Western Sahara"),
    (*b"ER", 232, "Eritrea"),
    (*b"ES", 724, "Spain"),
    (*b"ET", 231, "Ethiopia"),
    (*b"FI", 246, "Finland"),
    (*b"FJ", 242, "Fiji"),
    (*b"FK", 238, "Falkland Islands"),
    (*b"FM", 583, "Micronesia"),
    (*b"FO", 234, "Faroe Islands"),
    (*b"FR", 250, "France"),
    (*b"GA", 266, "Gabon"),
    (*b"GB", 826, "United Kingdom"),
    (*b"GD", 308, "Grenada"),
    (*b"GE", 268, "Georgia"),
    (*b"GF", 254, "French Guiana"),
    (*b"GG", 831, "Guernsey"),
    (*b"GH", 288, "Ghana"),
    (*b"GI", 292, "Gibraltar"),
    (*b"GL", 304, "Greenland"),
    (*b"GM", 270, "Gambia"),
    (*b"GN", 324, "Guinea"),
    (*b"GP", 312, "Guadeloupe"),
    (*b"GQ", 226, "Equatorial Guinea"),
    (*b"GR", 300, "Greece"),
    (*b"GS", 239, "South Georgia"),
    (*b"GT", 320, "Guatemala"),
    (*b"GU", 316, "Guam"),
    (*b"GW", 624, "Guinea-Bissau"),
    (*b"GY", 328, "Guyana"),
    (*b"HK", 344, "Hong Kong"),
    (*b"HM", 334, "Heard and McDonald Islands"),
    (*b"HN", 340, "Honduras"),
    (*b"HR", 191, "Croatia"),
    (*b"HT", 332, "Haiti"),
    (*b"HU", 348, "Hungary"),
    (*b"ID", 360, "Indonesia"),
    (*b"IE", 372, "Ireland"),
    (*b"IL", 376, "Israel"),
    (*b"IM", 833, "Isle of Man"),
    (*b"IN", 356, "India"),
    (*b"IO", 86, "British Indian Ocean Territory"),
    (*b"IQ", 368, "Iraq"),
    (*b"IR", 364, "Iran"),
    (*b"IS", 352, "Iceland"),
    (*b"IT", 380, "Italy"),
    (*b"JE", 832, "Jersey"),
    (*b"JM", 388, "Jamaica"),
    (*b"JO", 400, "Jordan"),
    (*b"JP", 392, "Japan"),
    (*b"KE", 404, "Kenya"),
    (*b"KG", 417, "Kyrgyzstan"),
    (*b"KH", 116, "Cambodia"),
    (*b"KI", 296, "Kiribati"),
    (*b"KM", 174, "Comoros"),
    (*b"KN", 659, "Saint Kitts and Nevis"),
    (*b"KP", 408, "North Korea"),
    (*b"KR", 410, "South Korea"),
    (*b"KW", 414, "Kuwait"),
    (*b"KY", 136, "Cayman Islands"),
    (*b"KZ", 398, "Kazakhstan"),
    (*b"LA", 418, "Laos"),
    (*b"LB", 422, "Lebanon"),
    (*b"LC", 662, "Saint Lucia"),
    (*b"LI", 438, "Liechtenstein"),
    (*b"LK", 144, "Sri Lanka"),
    (*b"LR", 430, "Liberia"),
    (*b"LS", 426, "Lesotho"),
    (*b"LT", 440, "Lithuania"),
    (*b"LU", 442, "Luxembourg"),
    (*b"LV", 428, "Latvia"),
    (*b"LY", 434, "Libya"),
    (*b"MA", 504, "Morocco"),
    (*b"MC", 492, "Monaco"),
    (*b"MD", 498, "Moldova"),
    (*b"ME", 499, "Montenegro"),
    (*b"MF", 663, "Saint Martin"),
    (*b"MG", 450, "Madagascar"),
    (*b"MH", 584, "Marshall Islands"),
    (*b"MK", 807, "North Macedonia"),
    (*b"ML", 466, "Mali"),
    (*b"MM", 104, "Myanmar"),
    (*b"MN", 496, "Mongolia"),
    (*b"MO", 446, "Macao"),
    (*b"MP", 580, "Northern Mariana Islands"),
    (*b"MQ", 474, "Martinique"),
    (*b"MR", 478, "Mauritania"),
    (*b"MS", 500, "Montserrat"),
    (*b"MT", 470, "Malta"),
    (*b"MU", 480, "Mauritius"),
    (*b"MV", 462, "Maldives"),
    (*b"MW", 454, "Malawi"),
    (*b"MX", 484, "Mexico"),
    (*b"MY", 458, "Malaysia"),
    (*b"MZ", 508, "Mozambique"),
    (*b"NA", 516, "Namibia"),
    (*b"NC", 540, "New Caledonia"),
    (*b"NE", 562, "Niger"),
    (*b"NF", 574, "Norfolk Island"),
    (*b"NG", 566, "Nigeria"),
    (*b"NI", 558, "Nicaragua"),
    (*b"NL", 528, "Netherlands"),
    (*b"NO", 578, "Norway"),
    (*b"NP", 524, "Nepal"),
    (*b"NR", 520, "Nauru"),
    (*b"NU", 570, "Niue"),
    (*b"NZ", 554, "New Zealand"),
    (*b"OM", 512, "Oman"),
    (*b"PA", 591, "Panama"),
    (*b"PE", 604, "Peru"),
    (*b"PF", 258, "French Polynesia"),
    (*b"PG", 598, "Papua New Guinea"),
    (*b"PH", 608, "Philippines"),
    (*b"PK", 586, "Pakistan"),
    (*b"PL", 616, "Poland"),
    (*b"PM", 666, "Saint Pierre and Miquelon"),
    (*b"PN", 612, "Pitcairn Islands"),
    (*b"PR", 630, "Puerto Rico"),
    (*b"PS", 275, "Palestine"),
    (*b"PT", 620, "Portugal"),
    (*b"PW", 585, "Palau"),
    (*b"PY", 600, "Paraguay"),
    (*b"QA", 634, "Qatar"),
    (*b"RE", 638, "Réunion"),
    (*b"RO", 642, "Romania"),
    (*b"RS", 688, "Serbia"),
    (*b"RU", 643, "Russia"),
    (*b"RW", 646, "Rwanda"),
    (*b"SA", 682, "Saudi Arabia"),
    (*b"SB", 90, "Solomon Islands"),
    (*b"SC", 690, "Seychelles"),
    (*b"SD", 729, "Sudan"),
    (*b"SE", 752, "Sweden"),
    (*b"SG", 702, "Singapore"),
    (*b"SH", 654, "Saint Helena"),
    (*b"SI", 705, "Slovenia"),
    (*b"SJ", 744, "Svalbard and Jan Mayen"),
    (*b"SK", 703, "Slovakia"),
    (*b"SL", 694, "Sierra Leone"),
    (*b"SM", 674, "San Marino"),
    (*b"SN", 686, "Senegal"),
    (*b"SO", 706, "Somalia"),
    (*b"SR", 740, "Suriname"),
    (*b"SS", 728, "South Sudan"),
    (*b"ST", 678, "São Tomé and Príncipe"),
    (*b"SV", 222, "El Salvador"),
    (*b"SX", 534, "Sint Maarten"),
    (*b"SY", 760, "Syria"),
    (*b"SZ", 748, "Eswatini"),
    (*b"TC", 796, "Turks and Caicos Islands"),
    (*b"TD", 148, "Chad"),
    (*b"TF", 260, "French Southern Territories"),
    (*b"TG", 768, "Togo"),
    (*b"TH", 764, "Thailand"),
    (*b"TJ", 762, "Tajikistan"),
    (*b"TK", 772, "Tokelau"),
    (*b"TL", 626, "Timor-Leste"),
    (*b"TM", 795, "Turkmenistan"),
    (*b"TN", 788, "Tunisia"),
    (*b"TO", 776, "Tonga"),
    (*b"TR", 792, "Türkiye"),
    (*b"TT", 780, "Trinidad and Tobago"),
    (*b"TV", 798, "Tuvalu"),
    (*b"TW", 158, "Taiwan"),
    (*b"TZ", 834, "Tanzania"),
    (*b"UA", 804, "Ukraine"),
    (*b"UG", 800, "Uganda"),
    (*b"UM", 581, "U.S. Outlying Islands"),
    (*b"US", 840, "United States"),
    (*b"UY", 858, "Uruguay"),
    (*b"UZ", 860, "Uzbekistan"),
    (*b"VA", 336, "Vatican City"),
    (*b"VC", 670, "Saint Vincent and the Grenadines"),
    (*b"VE", 862, "Venezuela"),
    (*b"VG", 92, "British Virgin Islands"),
    (*b"VI", 850, "U.S. Virgin Islands"),
    (*b"VN", 704, "Vietnam"),
    (*b"VU", 548, "Vanuatu"),
    (*b"WF", 876, "Wallis and Futuna"),
    (*b"WS", 882, "Samoa"),
    (*b"XK", 0, "Kosovo"),
    (*b"YE", 887, "Yemen"),
    (*b"YT", 175, "Mayotte"),
    (*b"ZA", 710, "South Africa"),
    (*b"ZM", 894, "Zambia"),
    (*b"ZW", 716, "Zimbabwe"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_has_each_country_once() {
        assert_eq!(COUNTRIES.len(), 250);
        assert!(COUNTRIES.is_sorted_by(|a, b| a.0 < b.0));
        let distinct = |values: Vec<&str>| values.into_iter().collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(COUNTRIES.iter().map(|row| row.2).collect()), 250);
        let numbers: BTreeSet<u16> = COUNTRIES.iter().map(|row| row.1).collect();
        assert_eq!(numbers.len(), 250);
        assert!(numbers.iter().all(|number| *number <= 894));
        for (code, number, name) in COUNTRIES {
            assert!(is_country(*code) && name_of(*code) == Some(name), "{name}");
            assert!(!name.is_empty() && !name.contains(char::is_control));
            match number {
                0 => assert_eq!((*code, numeric_of(*code)), (*b"XK", None)),
                number => {
                    assert_eq!(numeric_of(*code), Some(*number));
                    assert_eq!(code_of_numeric(*number), Some(*code));
                }
            }
        }
        assert_eq!(codes().count(), 250);
    }

    #[test]
    fn countries_are_found_and_other_codes_are_not() {
        assert_eq!(name_of(*b"DE"), Some("Germany"));
        assert_eq!(
            (name_of(*b"US"), numeric_of(*b"US")),
            (Some("United States"), Some(840))
        );
        assert_eq!(
            (name_of(*b"XK"), numeric_of(*b"XK")),
            (Some("Kosovo"), None)
        );
        for code in [
            b"??", b"--", b"A1", b"A2", b"AP", b"EU", b"O1", b"T1", b"XX", b"ZZ", b"us", b"\0\0",
            b"AN", b"CS",
        ] {
            assert!(!is_country(*code), "{code:?}");
            assert_eq!(
                (name_of(*code), numeric_of(*code)),
                (None, None),
                "{code:?}"
            );
        }
        assert_eq!((code_of_numeric(0), code_of_numeric(999)), (None, None));
    }

    #[test]
    fn the_older_databases_have_the_same_countries() {
        let theirs = |code: &[u8; 2]| crate::countries::Country::coded(code);
        let missing: Vec<Code> = codes().filter(|code| theirs(code).is_none()).collect();
        assert_eq!(missing, [*b"XK"]);
    }
}
