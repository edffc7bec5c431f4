"""PostgreSQL: the only authority. Importing this package imports psycopg, so it is done at the first need."""
