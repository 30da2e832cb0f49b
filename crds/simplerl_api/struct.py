"""The base of every model of the contract: frozen, camelCase outside, unknown fields refused."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1, max_length=253)]
"""A name of something: at most 253 characters, as Kubernetes' own names."""
Path = Annotated[str, Field(min_length=1, max_length=1024)]
"""A file or folder path, at most 1024 characters."""
Prose = Annotated[str, Field(max_length=8192)]
"""Free text, at most 8192 characters."""


class Struct(BaseModel):
    """A frozen model whose JSON names are camelCase and which refuses fields that it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )

    cel: ClassVar[tuple[tuple[str, str], ...]] = ()
    """CEL rules of this object in the CRD, each with the sentence that a user reads when it is broken."""

    def document(self) -> dict[str, Any]:
        """The JSON document of this object: camelCase names, absent members left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's annotation holds: itself, or inside of a list or an option."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (found := model_in(argument)) is not None:
            return found
    return None


class Union(Struct):
    """A tagged union in the Kubernetes manner: an object of which exactly one member is set.

    Members carry no schema defaults (a default would stay when another member is set).
    """

    members: ClassVar[tuple[str, ...]] = ()
    """The JSON names of the members; set by each subclass when it has fields that are not members. Empty: all."""
    none_allowed: ClassVar[bool] = False
    """Whether all members may be absent, which then means a documented default."""

    @classmethod
    def member_names(cls) -> tuple[str, ...]:
        return cls.members or tuple(f.alias or name for name, f in cls.model_fields.items())

    @classmethod
    def one_of(cls) -> str:
        return f"give {'at most' if cls.none_allowed else 'exactly'} one of " + ", ".join(cls.member_names())

    @property
    def tag(self) -> str:
        """The JSON name of the member that is set."""
        return self._set()[0]

    def _set(self) -> list[str]:
        named = {f.alias or name: name for name, f in type(self).model_fields.items()}
        return [m for m in self.member_names() if getattr(self, named[m]) is not None]

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = self._set()
        if len(given) != 1 and not (self.none_allowed and not given):
            raise ValueError(f"{self.one_of()}, not {' and '.join(given) if given else 'none of them'}")
        return self
