"""/metrics: the newest figures for Prometheus (https://prometheus.io/docs/practices/naming/)."""

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from simplerl_trainer.progress.reporter import Reporter


def render(reporter: Reporter) -> bytes:
    """The document's figures in Prometheus' text format."""
    registry, document = CollectorRegistry(), reporter.document()

    def gauge(name: str, text: str, value: float | None) -> None:
        if value is not None:
            Gauge(name, text, registry=registry).set(value)

    gauge("simplerl_step", "Finished steps", document.step)
    gauge("simplerl_planned_steps", "Steps of the job", document.total_steps)
    gauge("simplerl_reward", "Mean reward of the newest step", document.metrics.get("reward"))
    gauge("simplerl_samples_per_second", "Samples trained per second, newest step", document.samples_per_second)
    gauge("simplerl_tokens_per_second", "Tokens per second, newest step", document.tokens_per_second)
    gauge("simplerl_eta_seconds", "Estimated seconds to the end", document.eta_seconds)
    gauge("simplerl_last_progress_timestamp_seconds", "When anything last moved", document.last_progress)
    run = Gauge("simplerl_run_info", "The attempt and its state", ["submission_id", "state"], registry=registry)
    run.labels(document.submission_id, document.state.value).set(1)
    values = Gauge("simplerl_training_metric", "A metric of the newest step", ["name"], registry=registry)
    for name, value in document.metrics.items():
        values.labels(name).set(value)
    seconds = Gauge("simplerl_step_part_seconds", "Seconds of the newest step by part", ["part"], registry=registry)
    for part, value in reporter.step_seconds.items():
        seconds.labels(part).set(value)
    accuracy = Gauge("simplerl_evaluation_accuracy", "Newest accuracy by data set", ["dataset"], registry=registry)
    for evaluation in document.evaluations:
        accuracy.labels(evaluation.dataset).set(evaluation.last.accuracy)
    return generate_latest(registry)
