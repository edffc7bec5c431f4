"""The page that comes with a verification's report."""
