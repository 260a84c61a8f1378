//! Countries by their index in MaxMind's older databases.
//!
//! Source: ISO 3166-1 for codes and names, and MaxMind's names and few codes of its own.

/// A country's codes and name, as variables show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Country {
    /// Two letters.
    pub code: &'static str,
    /// Three letters.
    pub code3: &'static str,
    /// The continent's two letters.
    pub continent: &'static str,
    name: &'static str,
}

impl Country {
    /// Returns the country with this number; 0 is none.
    pub fn numbered(number: u8) -> Option<Self> {
        let (code, code3, continent, name) = *COUNTRIES.get(usize::from(number))?;
        Some(Self {
            code,
            code3,
            continent,
            name,
        })
    }

    /// Returns the number of the country with this two-letter code, in capitals.
    pub fn number(code: &[u8]) -> Option<u8> {
        let number = NUMBERS[index(code)?];
        (number != 0).then_some(number)
    }

    /// Returns the country with this two-letter code, in capitals.
    pub fn coded(code: &[u8]) -> Option<Self> {
        Self::numbered(Self::number(code)?)
    }

    /// Returns its name in UTF-8; empty for none.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns its name with `c` for `ç`, the only letter outside ASCII, as MaxMind's library does by default.
    pub fn plain_name(self) -> String {
        self.name.replace('ç', "c")
    }
}

/// Returns the index in `NUMBERS` of a code of two characters.
const fn index(code: &[u8]) -> Option<usize> {
    let &[a, b] = code else {
        return None;
    };
    let (Some(a), Some(b)) = (digit(a), digit(b)) else {
        return None;
    };
    Some(a * CHARACTERS + b)
}

/// Returns the index of a digit or a capital among both.
const fn digit(character: u8) -> Option<usize> {
    match character {
        b'0'..=b'9' => Some((character - b'0') as usize),
        b'A'..=b'Z' => Some((character - b'A') as usize + 10),
        _ => None,
    }
}

/// Digits and capitals.
const CHARACTERS: usize = 36;

/// Numbers of countries by their codes, or 0.
static NUMBERS: [u8; CHARACTERS * CHARACTERS] = {
    let mut numbers = [0; CHARACTERS * CHARACTERS];
    // Downwards, since `O1` has two rows and the first one counts.
    let mut number = COUNTRIES.len() - 1;
    while number > 0 {
        if let Some(at) = index(COUNTRIES[number].0.as_bytes()) {
            numbers[at] = number as u8;
        }
        number -= 1;
    }
    numbers
};

/// Two-letter code, three-letter code, continent, name.
const COUNTRIES: &[(&str, &str, &str, &str)] = &[
    ("--", "--", "--", ""),
    ("AP", "AP", "AS", "Asia/Pacific Region"),
    ("EU", "EU", "EU", "Europe"),
    ("AD", "AND", "EU", "Andorra"),
    ("AE", "ARE", "AS", "United Arab Emirates"),
    ("AF", "AFG", "AS", "Afghanistan"),
    ("AG", "ATG", "NA", "Antigua and Barbuda"),
    ("AI", "AIA", "NA", "Anguilla"),
    ("AL", "ALB", "EU", "Albania"),
    ("AM", "ARM", "AS", "Armenia"),
    ("CW", "CUW", "NA", "Curaçao"),
    ("AO", "AGO", "AF", "Angola"),
    ("AQ", "ATA", "AN", "Antarctica"),
    ("AR", "ARG", "SA", "Argentina"),
    ("AS", "ASM", "OC", "American Samoa"),
    ("AT", "AUT", "EU", "Austria"),
    ("AU", "AUS", "OC", "Australia"),
    ("AW", "ABW", "NA", "Aruba"),
    ("AZ", "AZE", "AS", "Azerbaijan"),
    ("BA", "BIH", "EU", "Bosnia and Herzegovina"),
    ("BB", "BRB", "NA", "Barbados"),
    ("BD", "BGD", "AS", "Bangladesh"),
    ("BE", "BEL", "EU", "Belgium"),
    ("BF", "BFA", "AF", "Burkina Faso"),
    ("BG", "BGR", "EU", "Bulgaria"),
    ("BH", "BHR", "AS", "Bahrain"),
    ("BI", "BDI", "AF", "Burundi"),
    ("BJ", "BEN", "AF", "Benin"),
    ("BM", "BMU", "NA", "Bermuda"),
    ("BN", "BRN", "AS", "Brunei Darussalam"),
    ("BO", "BOL", "SA", "Bolivia"),
    ("BR", "BRA", "SA", "Brazil"),
    ("BS", "BHS", "NA", "Bahamas"),
    ("BT", "BTN", "AS", "Bhutan"),
    ("BV", "BVT", "AN", "Bouvet Island"),
    ("BW", "BWA", "AF", "Botswana"),
    ("BY", "BLR", "EU", "Belarus"),
    ("BZ", "BLZ", "NA", "Belize"),
    ("CA", "CAN", "NA", "Canada"),
    ("CC", "CCK", "AS", "Cocos (Keeling) Islands"),
    ("CD", "COD", "AF", "Congo, The Democratic Republic of the"),
    ("CF", "CAF", "AF", "Central African Republic"),
    ("CG", "COG", "AF", "Congo"),
    ("CH", "CHE", "EU", "Switzerland"),
    ("CI", "CIV", "AF", "Cote D'Ivoire"),
    ("CK", "COK", "OC", "Cook Islands"),
    ("CL", "CHL", "SA", "Chile"),
    ("CM", "CMR", "AF", "Cameroon"),
    ("CN", "CHN", "AS", "China"),
    ("CO", "COL", "SA", "Colombia"),
    ("CR", "CRI", "NA", "Costa Rica"),
    ("CU", "CUB", "NA", "Cuba"),
    ("CV", "CPV", "AF", "Cape Verde"),
    ("CX", "CXR", "AS", "Christmas Island"),
    ("CY", "CYP", "AS", "Cyprus"),
    ("CZ", "CZE", "EU", "Czech Republic"),
    ("DE", "DEU", "EU", "Germany"),
    ("DJ", "DJI", "AF", "Djibouti"),
    ("DK", "DNK", "EU", "Denmark"),
    ("DM", "DMA", "NA", "Dominica"),
    ("DO", "DOM", "NA", "Dominican Republic"),
    ("DZ", "DZA", "AF", "Algeria"),
    ("EC", "ECU", "SA", "Ecuador"),
    ("EE", "EST", "EU", "Estonia"),
    ("EG", "EGY", "AF", "Egypt"),
    ("EH", "ESH", "AF", "Western Sahara"),
    ("ER", "ERI", "AF", "Eritrea"),
    ("ES", "ESP", "EU", "Spain"),
    ("ET", "ETH", "AF", "Ethiopia"),
    ("FI", "FIN", "EU", "Finland"),
    ("FJ", "FJI", "OC", "Fiji"),
    ("FK", "FLK", "SA", "Falkland Islands (Malvinas)"),
    ("FM", "FSM", "OC", "Micronesia, Federated States of"),
    ("FO", "FRO", "EU", "Faroe Islands"),
    ("FR", "FRA", "EU", "France"),
    ("SX", "SXM", "NA", "Sint Maarten (Dutch part)"),
    ("GA", "GAB", "AF", "Gabon"),
    ("GB", "GBR", "EU", "United Kingdom"),
    ("GD", "GRD", "NA", "Grenada"),
    ("GE", "GEO", "AS", "Georgia"),
    ("GF", "GUF", "SA", "French Guiana"),
    ("GH", "GHA", "AF", "Ghana"),
    ("GI", "GIB", "EU", "Gibraltar"),
    ("GL", "GRL", "NA", "Greenland"),
    ("GM", "GMB", "AF", "Gambia"),
    ("GN", "GIN", "AF", "Guinea"),
    ("GP", "GLP", "NA", "Guadeloupe"),
    ("GQ", "GNQ", "AF", "Equatorial Guinea"),
    ("GR", "GRC", "EU", "Greece"),
    (
        "GS",
        "SGS",
        "AN",
        "South Georgia and the South Sandwich Islands",
    ),
    ("GT", "GTM", "NA", "Guatemala"),
    ("GU", "GUM", "OC", "Guam"),
    ("GW", "GNB", "AF", "Guinea-Bissau"),
    ("GY", "GUY", "SA", "Guyana"),
    ("HK", "HKG", "AS", "Hong Kong"),
    ("HM", "HMD", "AN", "Heard Island and McDonald Islands"),
    ("HN", "HND", "NA", "Honduras"),
    ("HR", "HRV", "EU", "Croatia"),
    ("HT", "HTI", "NA", "Haiti"),
    ("HU", "HUN", "EU", "Hungary"),
    ("ID", "IDN", "AS", "Indonesia"),
    ("IE", "IRL", "EU", "Ireland"),
    ("IL", "ISR", "AS", "Israel"),
    ("IN", "IND", "AS", "India"),
    ("IO", "IOT", "AS", "British Indian Ocean Territory"),
    ("IQ", "IRQ", "AS", "Iraq"),
    ("IR", "IRN", "AS", "Iran, Islamic Republic of"),
    ("IS", "ISL", "EU", "Iceland"),
    ("IT", "ITA", "EU", "Italy"),
    ("JM", "JAM", "NA", "Jamaica"),
    ("JO", "JOR", "AS", "Jordan"),
    ("JP", "JPN", "AS", "Japan"),
    ("KE", "KEN", "AF", "Kenya"),
    ("KG", "KGZ", "AS", "Kyrgyzstan"),
    ("KH", "KHM", "AS", "Cambodia"),
    ("KI", "KIR", "OC", "Kiribati"),
    ("KM", "COM", "AF", "Comoros"),
    ("KN", "KNA", "NA", "Saint Kitts and Nevis"),
    ("KP", "PRK", "AS", "Korea, Democratic People's Republic of"),
    ("KR", "KOR", "AS", "Korea, Republic of"),
    ("KW", "KWT", "AS", "Kuwait"),
    ("KY", "CYM", "NA", "Cayman Islands"),
    ("KZ", "KAZ", "AS", "Kazakhstan"),
    ("LA", "LAO", "AS", "Lao People's Democratic Republic"),
    ("LB", "LBN", "AS", "Lebanon"),
    ("LC", "LCA", "NA", "Saint Lucia"),
    ("LI", "LIE", "EU", "Liechtenstein"),
    ("LK", "LKA", "AS", "Sri Lanka"),
    ("LR", "LBR", "AF", "Liberia"),
    ("LS", "LSO", "AF", "Lesotho"),
    ("LT", "LTU", "EU", "Lithuania"),
    ("LU", "LUX", "EU", "Luxembourg"),
    ("LV", "LVA", "EU", "Latvia"),
    ("LY", "LBY", "AF", "Libya"),
    ("MA", "MAR", "AF", "Morocco"),
    ("MC", "MCO", "EU", "Monaco"),
    ("MD", "MDA", "EU", "Moldova, Republic of"),
    ("MG", "MDG", "AF", "Madagascar"),
    ("MH", "MHL", "OC", "Marshall Islands"),
    ("MK", "MKD", "EU", "Macedonia"),
    ("ML", "MLI", "AF", "Mali"),
    ("MM", "MMR", "AS", "Myanmar"),
    ("MN", "MNG", "AS", "Mongolia"),
    ("MO", "MAC", "AS", "Macau"),
    ("MP", "MNP", "OC", "Northern Mariana Islands"),
    ("MQ", "MTQ", "NA", "Martinique"),
    ("MR", "MRT", "AF", "Mauritania"),
    ("MS", "MSR", "NA", "Montserrat"),
    ("MT", "MLT", "EU", "Malta"),
    ("MU", "MUS", "AF", "Mauritius"),
    ("MV", "MDV", "AS", "Maldives"),
    ("MW", "MWI", "AF", "Malawi"),
    ("MX", "MEX", "NA", "Mexico"),
    ("MY", "MYS", "AS", "Malaysia"),
    ("MZ", "MOZ", "AF", "Mozambique"),
    ("NA", "NAM", "AF", "Namibia"),
    ("NC", "NCL", "OC", "New Caledonia"),
    ("NE", "NER", "AF", "Niger"),
    ("NF", "NFK", "OC", "Norfolk Island"),
    ("NG", "NGA", "AF", "Nigeria"),
    ("NI", "NIC", "NA", "Nicaragua"),
    ("NL", "NLD", "EU", "Netherlands"),
    ("NO", "NOR", "EU", "Norway"),
    ("NP", "NPL", "AS", "Nepal"),
    ("NR", "NRU", "OC", "Nauru"),
    ("NU", "NIU", "OC", "Niue"),
    ("NZ", "NZL", "OC", "New Zealand"),
    ("OM", "OMN", "AS", "Oman"),
    ("PA", "PAN", "NA", "Panama"),
    ("PE", "PER", "SA", "Peru"),
    ("PF", "PYF", "OC", "French Polynesia"),
    ("PG", "PNG", "OC", "Papua New Guinea"),
    ("PH", "PHL", "AS", "Philippines"),
    ("PK", "PAK", "AS", "Pakistan"),
    ("PL", "POL", "EU", "Poland"),
    ("PM", "SPM", "NA", "Saint Pierre and Miquelon"),
    ("PN", "PCN", "OC", "Pitcairn Islands"),
    ("PR", "PRI", "NA", "Puerto Rico"),
    ("PS", "PSE", "AS", "Palestinian Territory"),
    ("PT", "PRT", "EU", "Portugal"),
    ("PW", "PLW", "OC", "Palau"),
    ("PY", "PRY", "SA", "Paraguay"),
    ("QA", "QAT", "AS", "Qatar"),
    ("RE", "REU", "AF", "Reunion"),
    ("RO", "ROU", "EU", "Romania"),
    ("RU", "RUS", "EU", "Russian Federation"),
    ("RW", "RWA", "AF", "Rwanda"),
    ("SA", "SAU", "AS", "Saudi Arabia"),
    ("SB", "SLB", "OC", "Solomon Islands"),
    ("SC", "SYC", "AF", "Seychelles"),
    ("SD", "SDN", "AF", "Sudan"),
    ("SE", "SWE", "EU", "Sweden"),
    ("SG", "SGP", "AS", "Singapore"),
    ("SH", "SHN", "AF", "Saint Helena"),
    ("SI", "SVN", "EU", "Slovenia"),
    ("SJ", "SJM", "EU", "Svalbard and Jan Mayen"),
    ("SK", "SVK", "EU", "Slovakia"),
    ("SL", "SLE", "AF", "Sierra Leone"),
    ("SM", "SMR", "EU", "San Marino"),
    ("SN", "SEN", "AF", "Senegal"),
    ("SO", "SOM", "AF", "Somalia"),
    ("SR", "SUR", "SA", "Suriname"),
    ("ST", "STP", "AF", "Sao Tome and Principe"),
    ("SV", "SLV", "NA", "El Salvador"),
    ("SY", "SYR", "AS", "Syrian Arab Republic"),
    ("SZ", "SWZ", "AF", "Swaziland"),
    ("TC", "TCA", "NA", "Turks and Caicos Islands"),
    ("TD", "TCD", "AF", "Chad"),
    ("TF", "ATF", "AN", "French Southern Territories"),
    ("TG", "TGO", "AF", "Togo"),
    ("TH", "THA", "AS", "Thailand"),
    ("TJ", "TJK", "AS", "Tajikistan"),
    ("TK", "TKL", "OC", "Tokelau"),
    ("TM", "TKM", "AS", "Turkmenistan"),
    ("TN", "TUN", "AF", "Tunisia"),
    ("TO", "TON", "OC", "Tonga"),
    ("TL", "TLS", "AS", "Timor-Leste"),
    ("TR", "TUR", "EU", "Turkey"),
    ("TT", "TTO", "NA", "Trinidad and Tobago"),
    ("TV", "TUV", "OC", "Tuvalu"),
    ("TW", "TWN", "AS", "Taiwan"),
    ("TZ", "TZA", "AF", "Tanzania, United Republic of"),
    ("UA", "UKR", "EU", "Ukraine"),
    ("UG", "UGA", "AF", "Uganda"),
    ("UM", "UMI", "OC", "United States Minor Outlying Islands"),
    ("US", "USA", "NA", "United States"),
    ("UY", "URY", "SA", "Uruguay"),
    ("UZ", "UZB", "AS", "Uzbekistan"),
    ("VA", "VAT", "EU", "Holy See (Vatican City State)"),
    ("VC", "VCT", "NA", "Saint Vincent and the Grenadines"),
    ("VE", "VEN", "SA", "Venezuela"),
    ("VG", "VGB", "NA", "Virgin Islands, British"),
    ("VI", "VIR", "NA", "Virgin Islands, U.S."),
    ("VN", "VNM", "AS", "Vietnam"),
    ("VU", "VUT", "OC", "Vanuatu"),
    ("WF", "WLF", "OC", "Wallis and Futuna"),
    ("WS", "WSM", "OC", "Samoa"),
    ("YE", "YEM", "AS", "Yemen"),
    ("YT", "MYT", "AF", "Mayotte"),
    ("RS", "SRB", "EU", "Serbia"),
    ("ZA", "ZAF", "AF", "South Africa"),
    ("ZM", "ZMB", "AF", "Zambia"),
    ("ME", "MNE", "EU", "Montenegro"),
    ("ZW", "ZWE", "AF", "Zimbabwe"),
    ("A1", "A1", "--", "Anonymous Proxy"),
    ("A2", "A2", "--", "Satellite Provider"),
    ("O1", "O1", "--", "Other"),
    ("AX", "ALA", "EU", "Aland Islands"),
    ("GG", "GGY", "EU", "Guernsey"),
    ("IM", "IMN", "EU", "Isle of Man"),
    ("JE", "JEY", "EU", "Jersey"),
    ("BL", "BLM", "NA", "Saint Barthelemy"),
    ("MF", "MAF", "NA", "Saint Martin"),
    ("BQ", "BES", "NA", "Bonaire, Saint Eustatius and Saba"),
    ("SS", "SSD", "AF", "South Sudan"),
    ("O1", "O1", "--", "Other"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_format() {
        let code = |number| Country::numbered(number).map(|country| country.code);
        assert_eq!(
            (code(0), code(3), code(225)),
            (Some("--"), Some("AD"), Some("US"))
        );
        assert_eq!(
            (code(185), code(254), code(255)),
            (Some("RU"), Some("SS"), Some("O1"))
        );
        assert_eq!(Country::number(b"US"), Some(225));
        assert_eq!(
            (Country::number(b"--"), Country::number(b"??")),
            (None, None)
        );
    }

    #[test]
    fn each_code_has_one_row() {
        for (number, row) in COUNTRIES.iter().enumerate().skip(1) {
            // `O1` has two numbers.
            if row.0 != "O1" {
                assert_eq!(
                    Country::number(row.0.as_bytes()).map(usize::from),
                    Some(number)
                );
            }
            assert!(
                row.0.len() == 2 && row.2.len() == 2 && !row.3.is_empty(),
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_name_has_its_plain_form() {
        let curacao = Country::coded(b"CW").expect("it is in the table");
        assert_eq!(
            (curacao.name(), curacao.plain_name().as_str()),
            ("Curaçao", "Curacao")
        );
        let plain = COUNTRIES
            .iter()
            .enumerate()
            .filter_map(|(n, _)| Country::numbered(n as u8));
        assert!(
            plain
                .into_iter()
                .all(|country| country.plain_name().is_ascii())
        );
    }
}
