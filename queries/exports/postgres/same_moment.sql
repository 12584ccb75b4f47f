-- Has a transaction that has read nothing yet see the moment of another, as that one calls it: no row.
SET TRANSACTION SNAPSHOT '{moment}'
