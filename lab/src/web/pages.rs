//! The pages: their paths and views, and the pages for an empty or unreadable store.

use std::sync::Arc;
use std::time::Duration;

use store::Store;

use super::analyses::{Age, Analyses, Found, Limits};
use super::choices::{Choices, Kept};

use super::http::{Events, HTML, Handler, Request, Response, Route, Worker};
use super::params::Params;
use super::site::Site;
use super::views::{Context, Form as Chooser, Lead, Page, View, experiment};
use super::{assets, data, events, layout};
use crate::experiment::Report;
use crate::time::now_s;

/// All pages of a site.
pub(super) struct Pages {
    site: Site,
    choices: Arc<Kept>,
    analyses: Arc<Analyses>,
}

/// Form of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Page,
    Csv,
    Json,
}

impl Pages {
    pub(super) fn new(site: Site) -> Self {
        Self::with(site, Limits::default())
    }

    pub(super) fn with(site: Site, limits: Limits) -> Self {
        Self {
            choices: Arc::default(),
            analyses: Arc::new(Analyses::new(Arc::clone(&site.source), limits)),
            site,
        }
    }
}

impl Handler for Pages {
    fn route(&self, request: &Request) -> Route {
        if request.path == "events" {
            return Route::Stream;
        }
        if let Some(file) = assets::find(&request.path) {
            return Route::Now(file);
        }
        match target(&request.path) {
            Some(_) => Route::Thread,
            None => Route::Now(layout::missing()),
        }
    }

    fn worker(&self) -> Worker {
        let mut worker = Reader {
            site: self.site.clone(),
            choices: Arc::clone(&self.choices),
            analyses: Arc::clone(&self.analyses),
            store: None,
        };
        Box::new(move |request| worker.answer(request))
    }

    fn events(&self) -> Events {
        events::events(&self.site)
    }

    fn period(&self) -> Duration {
        events::period(&self.site)
    }
}

/// Returns the view and the form of a path.
fn target(path: &str) -> Option<(Page, Form)> {
    let (name, form) = match path.rsplit_once('.') {
        None => (path, Form::Page),
        Some((name, "csv")) => (name, Form::Csv),
        Some((name, "json")) => (name, Form::Json),
        Some(_) => return None,
    };
    let name = match (name, form) {
        ("", Form::Page) => Page::Overview.path(),
        (name, _) => name,
    };
    Page::ALL
        .into_iter()
        .find(|page| page.path() == name)
        .map(|page| (page, form))
}

/// The state of one thread.
struct Reader {
    site: Site,
    choices: Arc<Kept>,
    analyses: Arc<Analyses>,
    store: Option<Box<dyn Store>>,
}

impl Reader {
    fn answer(&mut self, request: &Request) -> Response {
        let (page, form) = target(&request.path).unwrap_or((Page::Overview, Form::Page));
        let params = match Params::parse(&request.query, now_s()) {
            Ok(params) => params,
            Err(reason) => {
                return match form {
                    Form::Json => data::error(400, &reason),
                    Form::Csv => Response::line(400, &reason),
                    Form::Page => layout::refused(page, &reason),
                };
            }
        };
        let made = self.view(page, form, &params);
        made.unwrap_or_else(|reason| {
            // Opened again by the next request: the file may have been replaced, or the server started.
            self.store = None;
            match form {
                Form::Json => data::error(503, &reason),
                Form::Csv => Response::line(503, &reason),
                Form::Page => layout::failed(page, &params, &self.site.source.name(), &reason),
            }
        })
    }

    fn view(&mut self, page: Page, form: Form, params: &Params) -> Result<Response, String> {
        if self.store.is_none() {
            self.store = Some(self.site.source.open()?);
        }
        let store = self.store.as_deref().ok_or("The store is not open.")?;
        let name = self.site.source.name();
        if page == Page::Experiments {
            return self.experiments(form, params, store);
        }
        let choices = self.choices.read(store);
        let Some(choices) = choices.map_err(|error| error.to_string())? else {
            return Ok(match form {
                Form::Json => data::json(page, params, &name, None),
                Form::Csv => Response::line(404, "The store is empty."),
                Form::Page => layout::empty(page, params, &name),
            });
        };
        let context = Context { params, store };
        let view = page.view(&context).map_err(|error| error.to_string())?;
        Ok(match form {
            Form::Json => data::json(page, params, &name, Some(&view)),
            Form::Csv => data::csv(page, params, &view),
            Form::Page => {
                let site = layout::Frame {
                    page,
                    params,
                    store: &name,
                    choices: &choices,
                };
                Response::made(200, HTML, layout::page(&site, &view))
            }
        })
    }
    /// Answers for the list of experiments, or for one of them.
    fn experiments(
        &self,
        form: Form,
        params: &Params,
        store: &dyn Store,
    ) -> Result<Response, String> {
        let Some(name) = &params.experiment else {
            let context = Context { params, store };
            let view = Page::Experiments
                .view(&context)
                .map_err(|error| error.to_string())?;
            return Ok(self.list_page(form, params, &view));
        };
        let key = (name.clone(), params.is_a_a);
        if !self.analyses.has(&key) {
            // A name that the store does not have must not take a place.
            let all = store.experiments().map_err(|error| error.to_string())?;
            if !all.iter().any(|one| one.name == *name) {
                return Ok(unknown(form));
            }
        }
        Ok(match self.analyses.find(&key) {
            Found::Report { report, age } => self.report_page(form, params, &report, age),
            Found::InProgress => match form {
                Form::Json => data::error(503, IN_PROGRESS),
                Form::Csv => Response::line(503, IN_PROGRESS),
                Form::Page => {
                    let lead = Some(Lead::in_progress(name));
                    self.page(
                        params,
                        &View {
                            lead,
                            ..View::default()
                        },
                    )
                }
            },
            Found::Unknown => unknown(form),
            Found::Failed(reason) => return Err(reason),
        })
    }

    fn list_page(&self, form: Form, params: &Params, view: &View) -> Response {
        match form {
            Form::Json => data::json(
                Page::Experiments,
                params,
                &self.site.source.name(),
                Some(view),
            ),
            Form::Csv => data::csv(Page::Experiments, params, view),
            Form::Page => self.page(params, view),
        }
    }

    fn report_page(&self, form: Form, params: &Params, report: &Report, age: Age) -> Response {
        let primary = report.primary().map(|metric| metric.metric);
        let mut view = experiment(report, params.visit.or(primary));
        match age {
            Age::New => {}
            Age::Old => view.notes.push(OLD.to_owned()),
            Age::Failed(reason) => {
                let note = format!("The newest analysis failed: {reason}. {FAILED}");
                view.notes.push(note);
            }
        }
        if let Some(lead) = &mut view.lead {
            lead.form = Some(Chooser {
                experiment: report.experiment.clone(),
                metrics: report.metrics.iter().map(|metric| metric.metric).collect(),
                chosen: params.visit,
                is_a_a: params.is_a_a,
            });
        }
        match form {
            Form::Json => data::experiment(params, &self.site.source.name(), &view, report),
            Form::Csv => data::csv(Page::Experiments, params, &view),
            Form::Page => self.page(params, &view),
        }
    }

    /// Returns a page without period and filters.
    fn page(&self, params: &Params, view: &View) -> Response {
        let (store, choices) = (self.site.source.name(), Choices::default());
        let frame = layout::Frame {
            page: Page::Experiments,
            params,
            store: &store,
            choices: &choices,
        };
        Response::made(200, HTML, layout::page(&frame, view))
    }
}

fn unknown(form: Form) -> Response {
    let reason = "The store has no experiment of this name.";
    match form {
        Form::Json => data::error(404, reason),
        Form::Csv => Response::line(404, reason),
        Form::Page => layout::missing(),
    }
}

const IN_PROGRESS: &str = "The analysis is in progress. Try again in some seconds.";
const FAILED: &str = "This is the last analysis without an error.";
const OLD: &str =
    "This is the last analysis. A newer one is in progress; load the page again for it.";
