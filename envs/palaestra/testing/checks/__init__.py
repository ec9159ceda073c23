"""The checks of the conformance kit, one file a subject; importing them enters them into `CHECKS`."""

from palaestra.testing.checks import (
    action_checks,
    autoreset_checks,
    buffer_checks,
    codec_checks,
    copy_checks,
    docs_checks,
    face_checks,
    lane_checks,
    match_checks,
    mirror_checks,
    plain_checks,
    render_checks,
    rule_checks,
    script_checks,
    seed_checks,
    standard_checks,
)

__all__ = [
    "action_checks",
    "autoreset_checks",
    "buffer_checks",
    "codec_checks",
    "copy_checks",
    "docs_checks",
    "face_checks",
    "lane_checks",
    "match_checks",
    "mirror_checks",
    "plain_checks",
    "render_checks",
    "rule_checks",
    "script_checks",
    "seed_checks",
    "standard_checks",
]
