//! The visits of a page: runs of the cold view, and of the warm one.

use lab::browser::{self, Run};
use lab::page::har::{self, Page};
use lab::page::{View, Visit};

/// Visits of a page, one at least.
#[derive(Debug)]
pub(super) struct Views {
    cold: Vec<Visit>,
    warm: Vec<Visit>,
}

impl Views {
    /// The visits of an archive: of one page where it is named, else of the first page with resources and of all others of its URL,
    /// which are its further runs and its warm view.
    ///
    /// # Errors
    /// There is no such page, or it has no resources.
    pub(super) fn of_pages(pages: Vec<Page>, wanted: Option<&str>) -> Result<Self, String> {
        let visits: Vec<Visit> = match wanted {
            Some(_) => vec![har::choose(&pages, wanted)?.visit.clone()],
            None => {
                let mut visits: Vec<Visit> = pages.into_iter().map(|page| page.visit).collect();
                visits.retain(|visit| !visit.resources.is_empty());
                let url = visits.first().map(|visit| visit.url.clone());
                visits.retain(|visit| Some(&visit.url) == url.as_ref());
                visits
            }
        };
        if visits.iter().all(|visit| visit.resources.is_empty()) {
            return Err("the page has no entries".to_owned());
        }
        let is_cold = |visit: &Visit| visit.view == View::Cold;
        let (cold, warm): (Vec<Visit>, Vec<Visit>) = visits.into_iter().partition(is_cold);
        Ok(match cold.is_empty() {
            // A warm view alone is what there is to show.
            true => Self {
                cold: warm,
                warm: cold,
            },
            false => Self { cold, warm },
        })
    }

    /// The visits of a browser.
    pub(super) fn of_runs(runs: Vec<Run>) -> Self {
        let (cold, warm): (Vec<Visit>, Vec<Option<Visit>>) =
            runs.into_iter().map(|run| (run.cold, run.warm)).unzip();
        Self {
            cold,
            warm: warm.into_iter().flatten().collect(),
        }
    }

    /// Adds a note to all visits.
    pub(super) fn note(&mut self, note: &str) {
        for visit in self.cold.iter_mut().chain(&mut self.warm) {
            visit.notes.push(note.to_owned());
        }
    }

    /// Runs of the first view.
    pub(super) fn cold(&self) -> Vec<&Visit> {
        self.cold.iter().collect()
    }

    /// Runs of the view with what the first has left in caches; may be none.
    pub(super) fn warm(&self) -> Vec<&Visit> {
        self.warm.iter().collect()
    }

    /// The run in the middle of the first view.
    pub(super) fn shown(&self) -> &Visit {
        &self.cold[median(&self.cold())]
    }
}

/// The place of the visit whose load time is in the middle; of one there is always one.
pub(super) fn median(visits: &[&Visit]) -> usize {
    browser::median(visits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::page::Resource;

    fn page(id: &str, url: &str, view: View, load_ms: f64, count: usize) -> Page {
        let mut visit = Visit {
            url: url.to_owned(),
            view,
            resources: vec![Resource::default(); count],
            ..Visit::default()
        };
        visit.timings.load_ms = Some(load_ms);
        Page {
            id: id.to_owned(),
            visit,
        }
    }

    #[test]
    fn pages_of_one_url_are_runs_and_views() {
        let pages = || {
            vec![
                page("0", "http://a/", View::Cold, 1.0, 0),
                page("1", "http://a/", View::Cold, 30.0, 1),
                page("2", "http://a/", View::Warm, 5.0, 1),
                page("3", "http://b/", View::Cold, 1.0, 1),
                page("4", "http://a/", View::Cold, 10.0, 1),
                page("5", "http://a/", View::Cold, 20.0, 1),
            ]
        };
        let views = Views::of_pages(pages(), None).expect("there are some");
        assert_eq!((views.cold().len(), views.warm().len()), (3, 1));
        assert_eq!(views.shown().timings.load_ms, Some(20.0));
        let views = Views::of_pages(pages(), Some("2")).expect("it is there");
        assert_eq!((views.cold().len(), views.warm().len()), (1, 0));
        assert_eq!(views.shown().view, View::Warm);
        let empty = Views::of_pages(pages(), Some("0")).map(|_| ());
        assert_eq!(empty, Err("the page has no entries".to_owned()));
        assert!(Views::of_pages(pages(), Some("x")).is_err());
    }
}
