"""PostgreSQL: the only authority. Its modules import psycopg, so that is done at the first need."""
