//! A shared cache made of the rules, with a clock and a server that are numbers and lists.

use engines::http::{FieldId, Fields, Method, Ranges, UNLIMITED_RANGES, http_date, parse_range};

use super::super::{
    CDN_CACHE_CONTROL, ContentRange, FieldList, FreshnessPolicy, HeadEffect, Heuristic,
    IgnoredFields, Mark, Precondition, RequestFacts, ResponseFacts, Reuse, SetCookie, StorePolicy,
    Stored, TargetUri, Validators, Vary, VaryPolicy,
};
use super::super::{
    Candidate, can_satisfy, check_storable, conditional_fields, evaluate_precondition, freshened,
    head_effect, initial_age_s, invalidated_targets, invalidates, is_error_status, is_safe,
    lifetime, may_serve_on_error, requested_part, resolve_same_origin, reuse, served_fields,
    stored_fields, stored_method, updated_fields,
};
use super::List;

/// The expected use of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// Not compared.
    Any,
    /// The response comes from the store alone.
    Cached,
    /// The request is forwarded.
    NotCached,
    /// It is forwarded with `If-None-Match`, and the server sends 304.
    EtagValidated,
    /// It is forwarded with `If-Modified-Since`, and the server sends 304.
    DateValidated,
}

/// A request, the response of the server if it is forwarded, and the expected result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub method: Method,
    pub target: &'static str,
    pub request: List,
    /// Status of the server's response; 0: the server closes the connection.
    pub status: u16,
    pub response: List,
    pub body: &'static str,
    /// Seconds until the next step.
    pub wait_s: i64,
    /// Seconds until the server responds.
    pub delay_s: i64,
    pub expect: Expect,
    /// 0: not compared.
    pub expect_status: u16,
    /// Fields of the response; ">N" is a number greater than N, "-" no field.
    pub expect_fields: List,
    /// Fields of the forwarded request.
    pub expect_forwarded: List,
    /// Empty: not compared.
    pub expect_body: &'static str,
}

impl Step {
    pub(super) const GET: Self = Self {
        method: Method::Get,
        target: "/case",
        request: &[],
        status: 200,
        response: &[],
        body: "0123456789",
        wait_s: 0,
        delay_s: 0,
        expect: Expect::Any,
        expect_status: 0,
        expect_fields: &[],
        expect_forwarded: &[],
        expect_body: "",
    };
}

/// A stored response.
struct Entry {
    target: Vec<u8>,
    method: Method,
    facts: ResponseFacts,
    secondary_key: Vec<u8>,
    fields: Fields,
    body: &'static str,
    lifetime_s: u32,
    initial_age_s: u32,
    response_time_s: i64,
    mark: Mark,
}

impl Entry {
    fn stored(&self) -> Stored<'_> {
        let directives = &self.facts.directives;
        let (lifetime_s, age_s) = (self.lifetime_s, self.initial_age_s);
        Stored {
            mark: self.mark,
            ..Stored::received(directives, lifetime_s, age_s, self.response_time_s)
        }
    }

    fn part(&self) -> Option<&ContentRange> {
        self.facts.content_range.as_ref()
    }
}

/// The response to the client, and the forwarded request.
struct Answer {
    status: u16,
    fields: Fields,
    body: String,
    forwarded: Option<Fields>,
    server_status: u16,
}

pub(super) struct Model {
    now_s: i64,
    entries: Vec<Entry>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            now_s: 1_767_225_600,
            entries: Vec::new(),
        }
    }
}

const FRESHNESS: FreshnessPolicy = FreshnessPolicy {
    override_s: None,
    default_s: None,
    heuristic: Some(Heuristic {
        percent: 10,
        max_s: 86_400,
    }),
};

const STORE: StorePolicy<'_> = StorePolicy {
    methods: &[],
    set_cookie: SetCookie::Refuse,
    ranges: true,
    validate: true,
    use_stale: false,
};

impl Model {
    /// Runs the steps of a case.
    pub(super) fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        for (at, step) in steps.iter().enumerate() {
            let answer = self.exchange(step);
            self.compare(step, &answer)
                .map_err(|text| format!("step {at}: {text}"))?;
            self.now_s += step.wait_s;
        }
        Ok(())
    }

    fn list(&self, list: List) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in list {
            fields.push(name.as_bytes(), &self.value(value));
        }
        fields
    }

    fn value(&self, text: &str) -> Vec<u8> {
        match text.strip_prefix('@') {
            Some(seconds) => {
                let seconds: i64 = seconds.parse().expect("a number of seconds");
                http_date(self.now_s + seconds).to_vec()
            }
            None => text.as_bytes().to_vec(),
        }
    }

    fn compare(&self, step: &Step, answer: &Answer) -> Result<(), String> {
        let forwarded = answer.forwarded.as_ref().map(FieldList::from);
        let validated =
            |id| answer.server_status == 304 && forwarded.is_some_and(|request| request.has(id));
        let is_met = match step.expect {
            Expect::Any => true,
            Expect::Cached => forwarded.is_none(),
            Expect::NotCached => forwarded.is_some(),
            Expect::EtagValidated => validated(FieldId::IfNoneMatch),
            Expect::DateValidated => validated(FieldId::IfModifiedSince),
        };
        if !is_met {
            return Err(format!("{:?}, forwarded {forwarded:?}", step.expect));
        }
        if ![0, answer.status].contains(&step.expect_status) {
            return Err(format!("status {}", answer.status));
        }
        if !["", &answer.body].contains(&step.expect_body) {
            return Err(format!("body {}", answer.body));
        }
        let response = FieldList::from(&answer.fields);
        for (list, fields) in [
            (step.expect_fields, Some(response)),
            (step.expect_forwarded, forwarded),
        ] {
            for (name, expected) in list {
                let value = fields.and_then(|fields| fields.named(name.as_bytes()).next());
                self.compare_value(name, expected, value)?;
            }
        }
        Ok(())
    }

    fn compare_value(
        &self,
        name: &str,
        expected: &str,
        value: Option<&[u8]>,
    ) -> Result<(), String> {
        let text = value.map(String::from_utf8_lossy);
        let is_met = match (expected.strip_prefix('>'), &text) {
            _ if expected == "-" => text.is_none(),
            (_, None) => false,
            (Some(least), Some(text)) => text.parse::<i64>().ok() > least.parse().ok(),
            (None, Some(text)) => text.as_bytes() == self.value(expected),
        };
        is_met
            .then_some(())
            .ok_or_else(|| format!("{name}: {text:?}"))
    }

    fn exchange(&mut self, step: &Step) -> Answer {
        let request = self.list(step.request);
        let list = FieldList::from(&request);
        let facts = RequestFacts::of(step.method, list, step.target.contains('?'));
        if !is_safe(step.method) {
            return self.forward(step, &request, &facts, None);
        }
        let selected = self.select(step, list);
        let state = selected.map(|at| self.entries[at].stored());
        match reuse(&facts.directives, state.as_ref(), self.now_s) {
            Reuse::Fresh | Reuse::Stale(_) => {
                let at = selected.expect("there is a stored response");
                self.serve(step, list, at, None, 0)
                    .unwrap_or_else(|| self.forward(step, &request, &facts, None))
            }
            Reuse::Validate(_) => self.forward(step, &request, &facts, selected),
            Reuse::Miss => self.forward(step, &request, &facts, None),
            Reuse::GatewayTimeout => Answer {
                status: 504,
                fields: Fields::default(),
                body: String::new(),
                forwarded: None,
                server_status: 0,
            },
        }
    }

    /// The most recent stored response that the request selects.
    fn select(&self, step: &Step, request: FieldList<'_>) -> Option<usize> {
        let matches = |entry: &Entry| {
            entry.target == step.target.as_bytes()
                && can_satisfy(entry.method, step.method)
                && secondary_key(&entry.facts.vary, request) == entry.secondary_key
                && (entry.part().is_none() || request.has(FieldId::Range))
        };
        self.entries.iter().rposition(matches)
    }

    /// The response from the store; `None` if the request wants bytes that are not stored.
    fn serve(
        &self,
        step: &Step,
        request: FieldList<'_>,
        at: usize,
        forwarded: Option<Fields>,
        server_status: u16,
    ) -> Option<Answer> {
        let entry = &self.entries[at];
        let stored = FieldList::from(&entry.fields);
        let fields = served_fields(stored, entry.stored().age_s(self.now_s));
        let mut answer = Answer {
            status: entry.facts.status,
            fields,
            body: entry.body.to_owned(),
            forwarded,
            server_status,
        };
        if matches!(entry.facts.status, 200 | 206) {
            let received_s = entry.response_time_s;
            let found = evaluate_precondition(step.method, request, stored, received_s, self.now_s);
            if found == Precondition::NotModified {
                answer.status = 304;
                return Some(answer);
            }
        }
        let range = request.first(FieldId::Range);
        if let Some(range) = range.filter(|_| entry.facts.status == 200) {
            let size = entry.body.len() as u64;
            if let Ranges::One(bytes) = parse_range(range, size, UNLIMITED_RANGES) {
                answer.status = 206;
                answer.body = entry.body[bytes.start as usize..bytes.end as usize].to_owned();
            }
        } else if let Some(part) = entry.part() {
            let bytes = requested_part(range?, part)?;
            let first = part.bytes.start;
            let (start, end) = ((bytes.start - first) as usize, (bytes.end - first) as usize);
            answer.body = entry.body[start..end].to_owned();
        }
        Some(answer)
    }

    fn forward(
        &mut self,
        step: &Step,
        request: &Fields,
        facts: &RequestFacts,
        selected: Option<usize>,
    ) -> Answer {
        let forwarded = self.forwarded(request, selected);
        let request_time_s = self.now_s;
        self.now_s += step.delay_s;
        let received = self.list(step.response);
        let client = FieldList::from(request);
        let is_304 = selected.is_some()
            && matches!(step.expect, Expect::EtagValidated | Expect::DateValidated);
        if let Some(at) = selected.filter(|_| step.status == 0 || is_error_status(step.status)) {
            let state = self.entries[at].stored();
            if may_serve_on_error(&facts.directives, &state, false, self.now_s)
                && let Some(mut answer) = self.serve(step, client, at, None, 0)
            {
                answer.server_status = step.status;
                return answer;
            }
        }
        if let Some(at) = selected.filter(|_| is_304) {
            self.update(at, &received, request_time_s);
            let served = self.serve(step, client, at, Some(forwarded), 304);
            return served.expect("a validated response is whole");
        }
        if step.status != 0 {
            self.invalidate(step, &received);
            self.update_by_head(step, &received, request_time_s);
            self.store(step, client, facts, &received, request_time_s);
        }
        let response = ResponseFacts::of(
            step.status,
            FieldList::from(&received),
            self.now_s,
            &[CDN_CACHE_CONTROL],
            IgnoredFields::default(),
        );
        let age_s = initial_age_s(response.age_s, None, request_time_s, self.now_s);
        Answer {
            status: if step.status == 0 { 502 } else { step.status },
            fields: match age_s {
                0 => received,
                _ => served_fields(FieldList::from(&received), age_s),
            },
            body: step.body.to_owned(),
            forwarded: Some(forwarded),
            server_status: step.status,
        }
    }

    /// The request sent to the server: preconditions of the client are replaced if a stored response is validated.
    fn forwarded(&self, request: &Fields, selected: Option<usize>) -> Fields {
        let Some(at) = selected else {
            return request.clone();
        };
        let mut forwarded = Fields::default();
        for (id, name, value) in FieldList::from(request).iter() {
            if !matches!(id, FieldId::IfNoneMatch | FieldId::IfModifiedSince) {
                forwarded.push_id(id, name, value);
            }
        }
        let validators = Validators::of(FieldList::from(&self.entries[at].fields));
        conditional_fields(Some(validators), [], &mut forwarded);
        forwarded
    }

    /// Freshens the stored response by a 304.
    fn update(&mut self, at: usize, received: &Fields, request_time_s: i64) {
        let received = FieldList::from(received);
        let candidate = Candidate {
            validators: Validators::of(FieldList::from(&self.entries[at].fields)),
            date_s: 0,
        };
        assert_eq!(freshened(Validators::of(received), &[candidate]), [0]);
        self.replace_fields(at, received, request_time_s);
    }

    fn replace_fields(&mut self, at: usize, received: FieldList<'_>, request_time_s: i64) {
        let now_s = self.now_s;
        let entry = &mut self.entries[at];
        let facts_of = |fields| {
            let (targets, ignored) = (&[CDN_CACHE_CONTROL], IgnoredFields::default());
            ResponseFacts::of(entry.facts.status, fields, now_s, targets, ignored)
        };
        let directives = facts_of(received).directives;
        let stored = FieldList::from(&entry.fields);
        let fields = updated_fields(stored, received, &directives, false, now_s);
        let facts = facts_of(FieldList::from(&fields));
        (entry.fields, entry.facts) = (fields, facts);
        entry.lifetime_s = lifetime(&entry.facts, false, now_s, &FRESHNESS).seconds;
        entry.initial_age_s = initial_age_s(entry.facts.age_s, None, request_time_s, now_s);
        (entry.response_time_s, entry.mark) = (now_s, Mark::None);
    }

    fn update_by_head(&mut self, step: &Step, head: &Fields, request_time_s: i64) {
        if step.method != Method::Head || step.status != 200 {
            return;
        }
        let head = FieldList::from(head);
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            if entry.target != step.target.as_bytes() || entry.method != Method::Get {
                continue;
            }
            let stored = FieldList::from(&entry.fields);
            match head_effect(stored, head, entry.body.len() as u64) {
                HeadEffect::Stale => {
                    entry.mark = Mark::Stale {
                        since_s: self.now_s,
                    };
                }
                HeadEffect::Update => self.replace_fields(at, head, request_time_s),
            }
        }
    }

    fn invalidate(&mut self, step: &Step, received: &Fields) {
        if !invalidates(step.method, step.status) {
            return;
        }
        let targets = invalidated_targets(&base(step), FieldList::from(received));
        for entry in &mut self.entries {
            if targets.contains(&entry.target) {
                entry.mark = Mark::Invalid;
            }
        }
    }

    fn store(
        &mut self,
        step: &Step,
        request: FieldList<'_>,
        facts: &RequestFacts,
        received: &Fields,
        request_time_s: i64,
    ) {
        let received = FieldList::from(received);
        let ignored = IgnoredFields::default();
        let targets = &[CDN_CACHE_CONTROL];
        let response = ResponseFacts::of(step.status, received, self.now_s, targets, ignored);
        let location = received.named(b"Content-Location").next();
        let represents_target = location
            .and_then(|reference| resolve_same_origin(&base(step), reference))
            .is_some_and(|target| target == step.target.as_bytes());
        let Some(method) = stored_method(step.method, represents_target, &response) else {
            return;
        };
        let facts = RequestFacts {
            method,
            ..facts.clone()
        };
        let lifetime = lifetime(&response, facts.has_query, self.now_s, &FRESHNESS);
        if check_storable(&facts, &response, lifetime, &STORE).is_err() {
            return;
        }
        let fields = stored_fields(received, &response.directives, false, self.now_s);
        let entry = Entry {
            target: step.target.as_bytes().to_vec(),
            method,
            secondary_key: secondary_key(&response.vary, request),
            fields,
            body: step.body,
            lifetime_s: lifetime.seconds,
            initial_age_s: initial_age_s(response.age_s, None, request_time_s, self.now_s),
            response_time_s: self.now_s,
            mark: Mark::None,
            facts: response,
        };
        self.entries.retain(|old| {
            old.target != entry.target
                || old.method != entry.method
                || old.secondary_key != entry.secondary_key
        });
        self.entries.push(entry);
    }
}

fn base(step: &Step) -> TargetUri<'static> {
    TargetUri {
        scheme: b"http",
        authority: b"example.com",
        target: step.target.as_bytes(),
    }
}

fn secondary_key(vary: &Vary, request: FieldList<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    vary.push_secondary_key(request, VaryPolicy::default(), &mut key);
    key
}
