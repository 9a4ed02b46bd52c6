-- Sessions of people in the console, and the links that let the owner in. Only digests: cookies and codes are nowhere.
CREATE TABLE holdfast.web_sessions (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  digest  text COLLATE "C" NOT NULL,
  token   text COLLATE "C" NOT NULL,   -- the public part of the token; '' for the owner of the home
  created bigint NOT NULL,             -- seconds since 1970, as all times here
  used    bigint NOT NULL,
  expires bigint NOT NULL,
  PRIMARY KEY (tenant, digest)
);

CREATE TABLE holdfast.sign_in_codes (
  tenant  text COLLATE "C" NOT NULL DEFAULT holdfast.tenant(),
  digest  text COLLATE "C" NOT NULL,
  expires bigint NOT NULL,
  PRIMARY KEY (tenant, digest)
);

SELECT holdfast.protect('holdfast.web_sessions', '(SELECT holdfast.agent()) = ''*''');
SELECT holdfast.protect('holdfast.sign_in_codes', '(SELECT holdfast.agent()) = ''*''');
