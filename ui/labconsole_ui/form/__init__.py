"""Forms made from a trial's pydantic parameter model."""
