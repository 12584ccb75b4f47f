-- What the user of this session may do, a row a grant.
SHOW GRANTS
