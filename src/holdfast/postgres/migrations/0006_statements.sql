-- Which files state the same property of a subject. A name may be too long for an index of two, so the second is hashed.
DROP INDEX holdfast.fact_about;
CREATE INDEX fact_about ON holdfast.fact (tenant, about, hashtext(named), doc);
