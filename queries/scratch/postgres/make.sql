-- Makes the scratch schema of a drill: it must not be there.
CREATE SCHEMA {scratch}
