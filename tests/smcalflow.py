"""Requests and programs of our own in the style of SMCalFlow, for tests: few, but with all that is special about it."""

import json


def person(name):
    return (
        "Execute :intension ( refer ( extensionConstraint ( RecipientWithNameLike "
        f':constraint ( Constraint[Recipient] ) :name # ( PersonName " {name} " ) ) ) )'
    )


ME = "toRecipient ( CurrentUser )"


def asked(output):
    return f"( Yield :output ( {output} ) )"


def manager(of):
    return f"FindManager :recipient ( {of} )"


def attends(recipient):
    return f"AttendeeListHasRecipient :recipient ( {recipient} )"


def event(constraint):
    return asked(
        "CreateCommitEventWrapper :event ( CreatePreflightEventWrapper :constraint ( Constraint[Event] "
        f"{constraint} ) )"
    )


def on(day):
    return f':start ( Constraint[DateTime] :date ( ?= ( NextDOW :dow # ( DayOfWeek " {day} " ) ) ) )'


def subject(text):
    return f':subject ( ?= # ( String " {text} " ) )'


# Sources as published, before spaces are put around punctuation.
SINGLE = [
    ("Plan a picnic", event(subject("picnic"))),
    ("Plan a rehearsal", event(subject("rehearsal"))),
    ("Plan a picnic on Friday", event(f"{on('FRIDAY')} {subject('picnic')}")),
    ("Plan a rehearsal on monday", event(f"{on('MONDAY')} {subject('rehearsal')}")),
    (
        "Plan a picnic tomorrow at 3 pm",
        event(
            ":start ( ?= ( DateAtTimeWithDefaults :date ( Tomorrow ) :time ( NumberPM :number # ( Number 3 ) ) ) ) "
            + subject("picnic")
        ),
    ),
    ("Plan a rehearsal with Zoe", event(f":attendees ( {attends(person('Zoe'))} ) {subject('rehearsal')}")),
    ("Plan a picnic with Bert", event(f":attendees ( {attends(person('Bert'))} ) {subject('picnic')}")),
    (
        "Plan a picnic with Bert and Zoe",
        event(
            f":attendees ( andConstraint ( {attends(person('Bert'))} ) ( {attends(person('Zoe'))} ) ) "
            + subject("picnic")
        ),
    ),
    (
        "Plan a rehearsal for 2 hours in O'Hara's barn",
        event(
            ":duration ( ?= ( toHours # ( Number 2.0 ) ) ) "
            f""":location ( ?= # ( LocationKeyphrase " O'Hara's barn " ) ) {subject("rehearsal")}"""
        ),
    ),
    ("Who is Zoe's boss?", asked(manager(person("Zoe")))),
    ("Who is Bert's boss?", asked(manager(person("Bert")))),
    ("Who is my boss?", asked(manager(ME))),
    ("Who is the boss of my boss?", asked(manager(manager(ME)))),
    ("Who is on Bert's team?", asked(f"FindTeamOf :recipient ( {person('Bert')} )")),
]
CROSS = [
    ("Plan a picnic with my boss", event(f":attendees ( {attends(manager(ME))} ) {subject('picnic')}")),
    (
        "Plan a rehearsal with Zoe's boss",
        event(f":attendees ( {attends(manager(person('Zoe')))} ) {subject('rehearsal')}"),
    ),
]
UNKNOWABLE = [
    ("Who is her boss?", asked(manager(person("Zoe")))),
    (
        "Plan a picnic on May 4",
        event(
            ':start ( Constraint[DateTime] :date ( ?= ( MDY :day # ( Number 4 ) :month # ( Month " MAY " ) '
            f":year # ( Number 2021 ) ) ) ) {subject('picnic')}"
        ),
    ),
]


def write(path, pairs, keys=("source", "target")):
    """A file as published."""
    lines = [json.dumps(dict(zip(keys, pair, strict=True)) | {"tags": ["all"]}) for pair in pairs]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
