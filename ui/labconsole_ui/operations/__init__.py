"""Operations in the window: one dialog for all of them, made from their parameter models."""
