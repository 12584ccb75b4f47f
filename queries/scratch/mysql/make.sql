-- Makes the scratch database of a drill: it must not be there.
CREATE DATABASE {scratch} CHARACTER SET utf8mb4
