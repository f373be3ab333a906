"""What all configs of studies share: a key that is not known is an error."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class StudyConfig(Strict):
    """What a study file says, in either of its forms."""

    study: str
    quick: bool = False  # whether it is the small form; in a file `quick` has what is other there
